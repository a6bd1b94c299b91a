function Move-HotsetTempdb {
    <#
    .SYNOPSIS
    Moves a database server's temporary space (tempdb) to a folder, on wish the log as well.
    .DESCRIPTION
    The folder is one of the database server's machine, on the flash volume. SQL Server uses it after
    its next start. With -WhatIf the server is asked which statements it would run, and they are
    returned; none runs. Otherwise it asks first; a script says -Confirm:$false.
    .PARAMETER Dsn
    The database server as hotset reaches it, such as sqlserver://db1/shop?trust=yes.
    .PARAMETER Credential
    The database's user and password.
    .PARAMETER Engine
    The database product.
    .PARAMETER Folder
    A full path, such as F:\tempdb or /volume/tempdb.
    .PARAMETER Log
    Moves the log of the database that -Dsn names as well.
    .PARAMETER LogSize
    Makes the log so large, such as 30GiB, and lets files grow by 10 %.
    .OUTPUTS
    System.String: the statements that ran.
    .EXAMPLE
    Move-HotsetTempdb sqlserver://db1/shop -Credential sa -Folder F:\tempdb
    .EXAMPLE
    Move-HotsetTempdb sqlserver://db1/shop -Credential sa -Folder F:\tempdb -Log -LogSize 30GiB -WhatIf
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType([string])]
    param(
        [Parameter(Mandatory, Position = 0)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine = 'sqlserver',

        [Parameter(Mandatory)]
        [string] $Folder,

        [switch] $Log,

        [string] $LogSize
    )
    $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential
    $wanted = $PSCmdlet.ShouldProcess($Dsn, "Move tempdb to $Folder")
    if (-not $wanted -and -not $WhatIfPreference) { return }
    $job = Invoke-HotsetApi $PSCmdlet Post '/database/place' @{
        dsn      = $login.Dsn
        password = $login.Password
        engine   = $Engine
        folder   = $Folder
        log      = $Log
        log_size = $LogSize
        yes      = $wanted
        dry_run  = -not $wanted
    }
    (Complete-HotsetJob $job).Lines
}
