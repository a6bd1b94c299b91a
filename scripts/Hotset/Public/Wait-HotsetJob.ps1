function Wait-HotsetJob {
    <#
    .SYNOPSIS
    Waits until a job ends, with a progress bar, and returns its result.
    .DESCRIPTION
    A job that fails, is cancelled or is lost throws an error that has the server's words; the
    error's TargetObject is the job. Ctrl-C ends the waiting only: Stop-HotsetJob stops the job.
    .PARAMETER Id
    The job's id, or jobs by the pipeline; several are waited for one after the other.
    .PARAMETER TimeoutSeconds
    Throws when the job takes longer; the job goes on. Default: for ever.
    .PARAMETER IntervalSeconds
    Seconds between two looks.
    .OUTPUTS
    What the job measured: Hotset.WarmupRun, Hotset.TpccRun, Hotset.TpchRun and so on.
    .EXAMPLE
    Start-HotsetWarmup database:shop -Dsn sqlserver://db1/shop -Engine sqlserver -Credential sa | Wait-HotsetJob
    .EXAMPLE
    Get-HotsetJob | Where-Object State -eq running | Wait-HotsetJob -TimeoutSeconds 3600
    #>
    [CmdletBinding()]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Id,

        [ValidateRange(1, 2147483)]
        [Nullable[int]] $TimeoutSeconds,

        [ValidateRange(0.1, 3600)]
        [double] $IntervalSeconds = 1
    )
    begin {
        # A failure throws, whatever -ErrorAction says: nothing may wait for ever.
        $ErrorActionPreference = 'Stop'
    }
    process {
        foreach ($one in $Id) {
            $watch = [System.Diagnostics.Stopwatch]::StartNew()
            try {
                while ($true) {
                    $answer = Invoke-HotsetApi $PSCmdlet Get '/jobs/{id}' @{ id = $one }
                    $job = ConvertTo-HotsetJob $answer
                    if ($job.State -ne 'running') { break }
                    if ($TimeoutSeconds -and $watch.Elapsed.TotalSeconds -ge $TimeoutSeconds) {
                        $PSCmdlet.ThrowTerminatingError((New-HotsetError 'Timeout' 'OperationTimeout' `
                            "Job $one ($($job.Verb)) goes on after $TimeoutSeconds s." $job))
                    }
                    $status = $job.Progress
                    if (-not $status) { $status = 'started' }
                    Write-Progress -Activity "hotset $($job.Verb)" -Status $status -CurrentOperation $one
                    Start-Sleep -Milliseconds ([int] (1000 * $IntervalSeconds))
                }
            } finally {
                Write-Progress -Activity 'hotset' -Completed
            }
            if ($job.State -ne 'done') {
                $PSCmdlet.ThrowTerminatingError((New-HotsetError 'JobFailed' 'OperationStopped' `
                    "Job $one ($($job.Verb)) is $($job.State): $($job.Cause)" $job))
            }
            ConvertTo-HotsetResult $answer
        }
    }
}
