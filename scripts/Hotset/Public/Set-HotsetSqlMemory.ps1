function Set-HotsetSqlMemory {
    <#
    .SYNOPSIS
    Caps a database server's memory, so that a measurement is one of the disks.
    .DESCRIPTION
    With -WhatIf the server is asked which statements it would run, and they are returned; none runs.
    Otherwise it asks first; a script says -Confirm:$false.
    .PARAMETER Dsn
    The database server as hotset reaches it, such as sqlserver://db1/master?trust=yes.
    .PARAMETER Credential
    The database's user and password.
    .PARAMETER Engine
    The database product.
    .PARAMETER Size
    The cap, such as 8GiB; left out: 75 % of the machine's memory (SQL Server).
    .OUTPUTS
    System.String: the statements that ran.
    .EXAMPLE
    Set-HotsetSqlMemory sqlserver://db1/master -Credential sa -Size 8GiB
    .EXAMPLE
    Set-HotsetSqlMemory sqlserver://db1/master -Credential sa -WhatIf
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType([string])]
    param(
        [Parameter(Mandatory, Position = 0)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine = 'sqlserver',

        [string] $Size
    )
    $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential
    $wanted = $PSCmdlet.ShouldProcess($Dsn, 'Cap the memory')
    if (-not $wanted -and -not $WhatIfPreference) { return }
    $job = Invoke-HotsetApi $PSCmdlet Post '/database/memory' @{
        dsn      = $login.Dsn
        password = $login.Password
        engine   = $Engine
        size     = $Size
        yes      = $wanted
        dry_run  = -not $wanted
    }
    (Complete-HotsetJob $job).Lines
}
