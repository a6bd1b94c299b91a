function Compare-HotsetRun {
    <#
    .SYNOPSIS
    How many times faster each arm of a run was than that of the first run, with its interval.
    .PARAMETER Run
    Two runs or more, the first is what others stand beside; or runs by the pipeline.
    .PARAMETER Force
    Compares runs with different set-ups, too; otherwise those are refused, and named.
    .OUTPUTS
    Hotset.Comparison: a line for each arm, with SpeedRatio, CiLow, CiHigh (95 %) and Verdict.
    .EXAMPLE
    Compare-HotsetRun 20261120-2015, last
    .EXAMPLE
    Get-HotsetRun | Select-Object -First 2 | Compare-HotsetRun -Force
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Comparison')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string[]] $Run,

        [switch] $Force
    )
    begin {
        $runs = New-Object System.Collections.Generic.List[string]
    }
    process {
        foreach ($one in $Run) { $runs.Add($one) }
    }
    end {
        $answer = Invoke-HotsetApi $PSCmdlet Get '/runs/compare' @{
            run   = $runs.ToArray()
            force = $Force
        }
        foreach ($difference in $answer.differences) { Write-Warning "different set-ups: $difference" }
        foreach ($line in $answer.lines) { ConvertTo-HotsetObject $line 'Hotset.Comparison' }
    }
}
