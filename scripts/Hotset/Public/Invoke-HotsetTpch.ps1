function Invoke-HotsetTpch {
    <#
    .SYNOPSIS
    Runs the 22 queries of TPC-H on a database and returns their times.
    .DESCRIPTION
    The database must hold the tables ("hotset tpch build" makes them). Results are TPROC-H figures,
    derived from TPC-H; they are not audited TPC results.
    .PARAMETER Dsn
    The database as hotset reaches it, such as sqlserver://db1/tpch?trust=yes.
    .PARAMETER Credential
    The database's user and password.
    .PARAMETER Engine
    The database product.
    .PARAMETER Streams
    After the queries one by one, so many streams of them at once; min: the fewest that TPC-H allows.
    .PARAMETER Seed
    Draws the queries' parameters; left out: the validation ones.
    .PARAMETER Queries
    Which of the 22. All if left out.
    .PARAMETER QueryTimeoutSeconds
    Seconds a query may take; it is then cancelled.
    .PARAMETER Refresh
    Inserts and deletes 0.1 % of the orders around the queries; left out: with all 22.
    -Refresh $false never does.
    .PARAMETER Scale
    What is loaded; a different one is an error.
    .PARAMETER Driver
    hotset's own driver, or HammerDB.
    .PARAMETER AsJob
    Returns the job at once instead of waiting.
    .OUTPUTS
    Hotset.TpchRun, with Power (Queries, TotalS, GeometricMeanS) and Throughput. With -AsJob
    Hotset.Job.
    .EXAMPLE
    Invoke-HotsetTpch sqlserver://db1/tpch -Engine sqlserver -Credential sa
    .EXAMPLE
    (Invoke-HotsetTpch sqlserver://db1/tpch -Engine sqlserver -Credential $sa -Queries 1, 6, 21).Power.Queries | Sort-Object Seconds
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpchRun', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Streams,

        [Nullable[int]] $Seed,

        [ValidateRange(1, 22)]
        [int[]] $Queries,

        [Nullable[double]] $QueryTimeoutSeconds,

        [Nullable[bool]] $Refresh,

        [Nullable[double]] $Scale,

        [ValidateSet('hotset', 'hammerdb')]
        [string] $Driver,

        [switch] $AsJob
    )
    $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential
    if (-not $PSCmdlet.ShouldProcess($Dsn, 'Run TPC-H')) { return }
    $job = Invoke-HotsetApi $PSCmdlet Post '/tpch/run' @{
        dsn      = $login.Dsn
        password = $login.Password
        engine   = $Engine
        streams  = $Streams
        seed     = $Seed
        queries  = $Queries -join ','
        timeout  = $QueryTimeoutSeconds
        refresh  = $Refresh
        scale    = $Scale
        driver   = $Driver
    }
    Complete-HotsetJob $job $AsJob.IsPresent
}
