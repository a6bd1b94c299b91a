function Stop-HotsetJob {
    <#
    .SYNOPSIS
    Cancels a job: it takes down what it made and ends.
    .PARAMETER Id
    The job's id, or jobs by the pipeline.
    .OUTPUTS
    Hotset.Job, as it is once it was told; Wait-HotsetJob waits for its end.
    .EXAMPLE
    Stop-HotsetJob 20261121-083000-tpcc-run
    .EXAMPLE
    Get-HotsetJob | Where-Object State -eq running | Stop-HotsetJob -Confirm
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Id
    )
    process {
        foreach ($one in $Id) {
            if ($PSCmdlet.ShouldProcess($one, 'Cancel job')) {
                ConvertTo-HotsetJob (Invoke-HotsetApi $PSCmdlet Post '/jobs/{id}/cancel' @{ id = $one })
            }
        }
    }
}
