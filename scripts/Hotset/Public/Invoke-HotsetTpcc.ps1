function Invoke-HotsetTpcc {
    <#
    .SYNOPSIS
    Runs TPC-C's five transactions on a database and returns what the window measured.
    .DESCRIPTION
    The database must hold the tables ("hotset tpcc build" makes them). Results are TPROC-C figures,
    derived from TPC-C; they are not audited TPC results.
    .PARAMETER Dsn
    The database as hotset reaches it, such as sqlserver://db1/tpcc?trust=yes.
    .PARAMETER Credential
    The database's user and password.
    .PARAMETER Engine
    The database product.
    .PARAMETER Users
    Virtual users.
    .PARAMETER Warehouses
    How many are loaded.
    .PARAMETER RampupSeconds
    Unmeasured seconds first.
    .PARAMETER DurationSeconds
    Seconds of the window.
    .PARAMETER Seed
    Of every random choice.
    .PARAMETER ThinkTime
    Keying and think times (clause 5.2.5).
    .PARAMETER HomeWarehouses
    Each user stays at a warehouse of its own.
    .PARAMETER NoCheck
    Does not check the twelve consistency conditions afterwards.
    .PARAMETER Driver
    hotset's own driver, or HammerDB.
    .PARAMETER AsJob
    Returns the job at once instead of waiting.
    .OUTPUTS
    Hotset.TpccRun, with Nopm, Tpm, LatencyMs, Failed, Kinds, Series and Conditions. With -AsJob
    Hotset.Job.
    .EXAMPLE
    Invoke-HotsetTpcc sqlserver://db1/tpcc -Engine sqlserver -Credential sa -Users 32 -Warehouses 100 -DurationSeconds 300
    .EXAMPLE
    (Invoke-HotsetTpcc sqlserver://db1/tpcc -Engine sqlserver -Credential $sa).Nopm

    New orders a minute.
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpccRun', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Nullable[int]] $Users,

        [Nullable[int]] $Warehouses,

        [Nullable[double]] $RampupSeconds,

        [Nullable[double]] $DurationSeconds,

        [Nullable[int]] $Seed,

        [switch] $ThinkTime,

        [switch] $HomeWarehouses,

        [switch] $NoCheck,

        [ValidateSet('hotset', 'hammerdb')]
        [string] $Driver,

        [switch] $AsJob
    )
    $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential
    if (-not $PSCmdlet.ShouldProcess($Dsn, 'Run TPC-C')) { return }
    $job = Invoke-HotsetApi $PSCmdlet Post '/tpcc/run' @{
        dsn             = $login.Dsn
        password        = $login.Password
        engine          = $Engine
        users           = $Users
        warehouses      = $Warehouses
        rampup          = $RampupSeconds
        duration        = $DurationSeconds
        seed            = $Seed
        think_time      = $ThinkTime
        home_warehouses = $HomeWarehouses
        check           = -not $NoCheck
        driver          = $Driver
    }
    Complete-HotsetJob $job $AsJob.IsPresent
}
