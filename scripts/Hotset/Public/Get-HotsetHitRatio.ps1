function Get-HotsetHitRatio {
    <#
    .SYNOPSIS
    Reads, writes, hits and what was bypassed, of a disk or its parts.
    .DESCRIPTION
    Denominator says what a ratio is a share of, Notes what else to know; what a tier does not count is empty, never 0. Parts
    (-By file, database, table) need "hotset heat start" on the disk before.
    .PARAMETER Disk
    The accelerated disk; the only one if left out.
    .PARAMETER Machine
    Where the disk is, if not the server itself, such as ssh://root@db1.
    .PARAMETER By
    The whole disk, or its parts; volume: all disks of the card and its flash volume.
    .PARAMETER Since
    boot: since the counters began; last: since the last report; a time such as 08:00 or
    2026-11-21T08:00; or a span such as 8h.
    .PARAMETER Engine
    The database product.
    .PARAMETER Dsn
    The database server as hotset reaches it, for -By database and table.
    .PARAMETER Credential
    The database's user and password.
    .OUTPUTS
    Hotset.HitRatio: a line for each part and one for the total, ratios 0 to 1.
    .EXAMPLE
    (Get-HotsetHitRatio shop).HitRatio
    .EXAMPLE
    Get-HotsetHitRatio shop -By table -Since 8h -Engine sqlserver -Dsn sqlserver://db1/shop -Credential sa | Sort-Object HitRatio
    #>
    [CmdletBinding()]
    [OutputType('Hotset.HitRatio')]
    param(
        [Parameter(Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Disk,

        [string] $Machine,

        [ValidateSet('total', 'volume', 'file', 'database', 'table')]
        [string] $By,

        [string] $Since,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential
        $report = Invoke-HotsetApi $PSCmdlet Post '/report/hit-ratio' @{
            disk     = $Disk
            machine  = $Machine
            by       = $By
            since    = $Since
            engine   = $Engine
            dsn      = $login.Dsn
            password = $login.Password
        }
        $lines = @($report.total)
        if ($report.by -ne 'total') { $lines = @($report.rows) + $lines }
        foreach ($line in $lines) {
            foreach ($name in 'disk', 'tier', 'by', 'begun', 'ended', 'denominator', 'notes') {
                Add-Member -InputObject $line -NotePropertyName $name -NotePropertyValue $report.$name
            }
            ConvertTo-HotsetObject $line 'Hotset.HitRatio'
        }
    }
}
