function Get-HotsetRun {
    <#
    .SYNOPSIS
    The archive of experiments: all runs, or what one of them measured.
    .PARAMETER Run
    A run's id, the beginning of one, or last. The list of all if left out.
    .OUTPUTS
    Hotset.Run for each run of the list; Hotset.RunDocument, with everything, for one.
    .EXAMPLE
    Get-HotsetRun | Where-Object Significant | Sort-Object Factor -Descending
    .EXAMPLE
    (Get-HotsetRun last).Experiment
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Run', 'Hotset.RunDocument')]
    param(
        [Parameter(Position = 0, ValueFromPipelineByPropertyName)]
        [string[]] $Run
    )
    process {
        if (-not $Run) {
            $answer = Invoke-HotsetApi $PSCmdlet Get '/runs'
            foreach ($one in $answer.runs) { ConvertTo-HotsetObject $one 'Hotset.Run' }
            return
        }
        foreach ($one in $Run) {
            $document = Invoke-HotsetApi $PSCmdlet Get '/runs/{run}' @{ run = $one }
            ConvertTo-HotsetObject $document 'Hotset.RunDocument'
        }
    }
}
