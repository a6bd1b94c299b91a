function Get-HotsetHitRatio {
    <#
    .SYNOPSIS
    Reads, writes, hits and what was bypassed, of a disk or its parts.
    .DESCRIPTION
    Denominator says what a ratio is a share of, Notes what else to know; what a tier does not count
    is empty, never 0. Parts (-By file, database, table) need Start-HotsetHeat on the disk before.
    .PARAMETER Disk
    The accelerated disk; the only one if left out.
    .PARAMETER Machine
    Where the disk is, if not the server itself, such as ssh://root@db1.
    .PARAMETER By
    The whole disk, or its parts; volume: all disks of the flash device and its volume.
    .PARAMETER Since
    boot: since the counters started; last: since the report that was marked last; a time
    such as 08:00, 2026-11-21T08:00 or (Get-Date).Date; or a span such as 8h or (New-TimeSpan -Hours 8).
    .PARAMETER Engine
    The database product. Told by -Dsn if left out.
    .PARAMETER Dsn
    The database server as hotset reaches it, for -By database and table. No password: that is
    -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Wait
    Goes on with what was counted since the line before, until Ctrl-C, like Get-Content -Wait. Each
    reading is marked, as by -Mark.
    .PARAMETER Mark
    Has reports -Since last count from this one on. It takes the right to operate; a report without
    it is a look.
    .PARAMETER IntervalSeconds
    Seconds between two readings of -Wait.
    .PARAMETER Connection
    The servers to ask, one or several: what Connect-Hotset or Get-HotsetConnection returned, or
    addresses. The server that was connected to last if left out.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.HitRatio: a line for each part and one for the total, ratios 0 to 1.
    .EXAMPLE
    (Get-HotsetHitRatio shop).HitRatio
    .EXAMPLE
    Get-HotsetHitRatio shop -By database -Since 8h -Dsn sqlserver://db1/shop?trust=yes -Credential sa | Sort-Object HitRatio
    .EXAMPLE
    Get-HotsetHitRatio shop -By table -Since 8h -Dsn postgresql://db1/shop -Credential app | Sort-Object HitRatio
    .EXAMPLE
    Get-HotsetHitRatio shop -Wait | Format-Table Ended, Reads, HitRatio
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.HitRatio')]
    param(
        [Parameter(Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateSet('total', 'volume', 'file', 'database', 'table')]
        [string] $By,

        [ValidateNotNullOrEmpty()]
        [object] $Since,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Alias('SqlInstance')]
        [ValidateNotNullOrEmpty()]
        [object] $Dsn,

        [Alias('SqlCredential')]
        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [switch] $Wait,

        [switch] $Mark,

        [ValidateRange(0.1, 3600.0)]
        [double] $IntervalSeconds = 1,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $begin = ConvertTo-HotsetTime $Since
        if ($Wait) { $Mark = $true }
        do {
            foreach ($each in @(Select-HotsetItem $PSCmdlet Disk $Disk)) {
                Invoke-HotsetQuery $PSCmdlet $Connection 'report hit-ratio' -Values @{
                    disk     = $each
                    machine  = $Machine
                    by       = (ConvertTo-HotsetChoice $By)
                    since    = $begin
                    mark     = $Mark
                    engine   = $login.Engine
                    dsn      = $login.Dsn
                    password = $login.Password
                }
            }
            $begin = 'last'
            if ($Wait) { Start-Sleep -Milliseconds ([int] (1000 * $IntervalSeconds)) }
        } while ($Wait)
    }
}
