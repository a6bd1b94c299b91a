function Get-HotsetDisk {
    <#
    .SYNOPSIS
    The accelerated disks: kind, state, sizes in bytes, hit ratios.
    .PARAMETER Disk
    One of them. All if left out.
    .PARAMETER Machine
    Where the disks are, if not on the server itself, such as ssh://root@db1.
    .OUTPUTS
    Hotset.Disk
    .EXAMPLE
    Get-HotsetDisk | Where-Object DirtyBytes -gt 1GB
    .EXAMPLE
    Get-HotsetDisk | Get-HotsetHitRatio -Since 8h
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Disk')]
    param(
        [Parameter(Position = 0)]
        [string] $Disk,

        [string] $Machine
    )
    $answer = Invoke-HotsetApi $PSCmdlet Get '/tier/status' @{
        disk    = $Disk
        machine = $Machine
    }
    foreach ($one in $answer.disks) { ConvertTo-HotsetObject $one 'Hotset.Disk' }
}
