function Get-HotsetWarmupPlan {
    <#
    .SYNOPSIS
    What a warm-up would do: what fits, what does not, in which order, how long. Changes nothing.
    .PARAMETER Target
    As of Start-HotsetWarmup.
    .PARAMETER Disk
    The accelerated disk; the only one if left out.
    .PARAMETER Machine
    Where the disk is, if not the server itself, such as ssh://root@db1.
    .PARAMETER Pin
    Targets that come before all others.
    .PARAMETER Exclude
    Targets that are never taken.
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not now.
    .PARAMETER Engine
    The database product.
    .PARAMETER Dsn
    The database server as hotset reaches it, such as sqlserver://db1/shop?trust=yes.
    .PARAMETER Credential
    The database's user and password.
    .PARAMETER OriginRate
    The slow disk's sequential rate, such as 110MB/s; measured if left out.
    .OUTPUTS
    Hotset.WarmupPlan: a line for each target, the most important first.
    .EXAMPLE
    Get-HotsetWarmupPlan database:shop -Engine sqlserver -Dsn sqlserver://db1/shop -Credential sa

    How much of the database fits in the cache, how much is there already, seconds to fetch the rest.
    #>
    [CmdletBinding()]
    [OutputType('Hotset.WarmupPlan')]
    param(
        [Parameter(Mandatory, Position = 0)]
        [string[]] $Target,

        [string] $Disk,

        [string] $Machine,

        [string[]] $Pin,

        [string[]] $Exclude,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [string] $OriginRate
    )
    $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential
    $plan = Invoke-HotsetApi $PSCmdlet Post '/warmup/plan' @{
        targets     = $Target
        disk        = $Disk
        machine     = $Machine
        pin         = $Pin
        exclude     = $Exclude
        mount_point = $MountPoint
        engine      = $Engine
        dsn         = $login.Dsn
        password    = $login.Password
        origin_rate = $OriginRate
    }
    foreach ($note in $plan.notes) { Write-Warning $note }
    foreach ($line in $plan.targets) { ConvertTo-HotsetObject $line 'Hotset.WarmupPlan' }
}
