function Get-HotsetJob {
    <#
    .SYNOPSIS
    The jobs that the server keeps, or those of these ids.
    .PARAMETER Id
    A job's id. All jobs if left out.
    .OUTPUTS
    Hotset.Job, with Id, Verb, State (running, done, failed, interrupted, lost), Progress and Said.
    .EXAMPLE
    Get-HotsetJob | Where-Object State -eq running
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Id
    )
    process {
        if (-not $Id) {
            $answer = Invoke-HotsetApi $PSCmdlet Get '/jobs'
            foreach ($job in $answer.jobs) { ConvertTo-HotsetJob $job }
            return
        }
        foreach ($one in $Id) {
            ConvertTo-HotsetJob (Invoke-HotsetApi $PSCmdlet Get '/jobs/{id}' @{ id = $one })
        }
    }
}
