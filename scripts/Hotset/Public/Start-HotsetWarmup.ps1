function Start-HotsetWarmup {
    <#
    .SYNOPSIS
    Starts a warm-up on the server: caches tables, databases or files before their users come.
    .DESCRIPTION
    Returns the job at once; it goes on when this session ends. Wait-HotsetJob waits for it. What is
    cached already stays, as far as there is room. With -WhatIf nothing starts; what would fit and
    how long it would take says Get-HotsetWarmupPlan, which takes the same parameters.
    .PARAMETER Target
    What to cache, the most important first: a full path of a file or folder on the server,
    table:NAME, index:NAME, database:NAME (these with -Dsn), heat, or snapshot:FILE.
    .PARAMETER Resume
    Goes on with a warm-up that was interrupted: its name, or last.
    .PARAMETER Disk
    The accelerated disk; the only one if left out.
    .PARAMETER Machine
    Where the disk is, if not the server itself, such as ssh://root@db1.
    .PARAMETER Method
    dm-cache: offline fills a device that is not in use, online reads through one that is.
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
    .PARAMETER Rate
    At most so much, such as 50MB/s.
    .PARAMETER Samples
    Off line: blocks compared with the disk afterwards.
    .PARAMETER Share
    On line: enough when this share, 0.01 to 1, is cached.
    .OUTPUTS
    Hotset.Job
    .EXAMPLE
    Start-HotsetWarmup table:dbo.orders, index:IX_orders -Engine sqlserver -Dsn sqlserver://db1/shop -Credential sa | Wait-HotsetJob

    Caches a table and its index, shows a progress bar, returns what was fetched.
    .EXAMPLE
    'heat' | Start-HotsetWarmup -Disk shop -Rate 50MB/s

    The hottest blocks first, at no more than 50 MB/s.
    #>
    [CmdletBinding(SupportsShouldProcess, DefaultParameterSetName = 'Target')]
    [OutputType('Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ParameterSetName = 'Target')]
        [string[]] $Target,

        [Parameter(Mandatory, ParameterSetName = 'Resume')]
        [string] $Resume,

        [string] $Disk,

        [string] $Machine,

        [ValidateSet('auto', 'offline', 'online')]
        [string] $Method,

        [Parameter(ParameterSetName = 'Target')]
        [string[]] $Pin,

        [Parameter(ParameterSetName = 'Target')]
        [string[]] $Exclude,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [string] $Rate,

        [Nullable[int]] $Samples,

        [Nullable[double]] $Share
    )
    begin {
        $targets = New-Object System.Collections.Generic.List[string]
    }
    process {
        foreach ($one in $Target) { $targets.Add($one) }
    }
    end {
        $what = $targets -join ', '
        if ($Resume) { $what = "warm-up $Resume" }
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential
        if (-not $PSCmdlet.ShouldProcess($what, 'Cache')) { return }
        $job = Invoke-HotsetApi $PSCmdlet Post '/warmup/run' @{
            targets     = $targets.ToArray()
            resume      = $Resume
            disk        = $Disk
            machine     = $Machine
            method      = $Method
            pin         = $Pin
            exclude     = $Exclude
            mount_point = $MountPoint
            engine      = $Engine
            dsn         = $login.Dsn
            password    = $login.Password
            rate        = $Rate
            samples     = $Samples
            share       = $Share
        }
        ConvertTo-HotsetJob $job
    }
}
