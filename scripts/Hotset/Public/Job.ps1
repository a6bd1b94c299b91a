function Get-HotsetJob {
    <#
    .SYNOPSIS
    The jobs that the servers keep, or those of these ids.
    .DESCRIPTION
    Long work is a job on the server: it goes on when PowerShell ends. Done, Total and Unit say how far
    a running job is, EtaS how many seconds it still takes; they are empty where the server cannot
    know.
    .PARAMETER Id
    A job's id, the beginning of one with a star (2026*), or last, the newest. All jobs if left out.
    .PARAMETER Limit
    How many, the newest.
    .PARAMETER Connection
    The servers to ask, one or several: what Connect-Hotset or Get-HotsetConnection returned, or
    addresses. The server that was connected to last if left out.
    .INPUTS
    System.String, or objects with the property Id: -Id
    .OUTPUTS
    Hotset.Job, with Id, Verb, State (running, done, failed, interrupted, lost), Started, Ended,
    Duration, Progress and Messages.
    .EXAMPLE
    Get-HotsetJob | Where-Object State -eq running
    .EXAMPLE
    Get-HotsetJob last | Format-List *
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Id,

        [ValidateNotNull()]
        [ValidateRange(1, 500)]
        [Nullable[int]] $Limit,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $sessions = @(Resolve-HotsetConnection $PSCmdlet $Connection)
        $several = $sessions.Count -gt 1 -or @($Id).Count -gt 1 -or $PSCmdlet.MyInvocation.ExpectingInput
        foreach ($session in $sessions) {
            foreach ($one in @(Select-HotsetItem $PSCmdlet Id $Id)) {
                $like = '*'
                if ($one -match '[*?]') { $like, $one = $one, $null }
                if ($one) {
                    $answer = Invoke-HotsetApi $session Get '/api/v1/jobs/{id}' @{ id = $one }
                } else {
                    $answer = Invoke-HotsetApi $session Get '/api/v1/jobs' @{ limit = $Limit }
                }
                if ($answer -is [System.Management.Automation.ErrorRecord]) {
                    Write-HotsetFailure $PSCmdlet (Add-HotsetPlace $answer $session $sessions) $several
                    continue
                }
                if (-not $one) { $answer = $answer.jobs }
                foreach ($job in $answer) {
                    if ($job.id -like $like) { ConvertTo-HotsetJob $job $session.Server }
                }
            }
        }
    }
}

function Wait-HotsetJob {
    <#
    .SYNOPSIS
    Waits until jobs end, with a progress bar each, and returns their results.
    .DESCRIPTION
    A job that fails, is cancelled or is lost is an error that has the server's words; its
    TargetObject is the job. One job that fails ends the cmdlet, one among several does not. Ctrl-C
    ends the waiting only: Stop-HotsetJob stops the job. A server that does not answer, because it
    is restarted, is asked again for -RetrySeconds.
    .PARAMETER Id
    The job's id, or jobs by the pipeline; several are waited for together.
    .PARAMETER TimeoutSeconds
    An error when the jobs take longer; they go on. Default: for ever.
    .PARAMETER IntervalSeconds
    Seconds between two looks.
    .PARAMETER RetrySeconds
    How long a server that does not answer is asked again.
    .PARAMETER Connection
    The server that the jobs are on. The server that was connected to last if left out; objects of
    Get-HotsetJob know theirs.
    .INPUTS
    System.String, or objects with the properties Id and Server: -Id, -Connection
    .OUTPUTS
    What the job measured: Hotset.WarmupRun, Hotset.TpccRun, Hotset.TpchRun and so on.
    .EXAMPLE
    Start-HotsetWarmup database:shop -Dsn sqlserver://db1/shop?trust=yes -Credential sa | Wait-HotsetJob
    .EXAMPLE
    Get-HotsetJob | Where-Object State -eq running | Wait-HotsetJob -TimeoutSeconds 3600
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.WarmupRun', 'Hotset.TpccRun', 'Hotset.TpchRun', 'Hotset.RunDocument')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Id,

        [ValidateNotNull()]
        [ValidateRange(1, 2147483)]
        [Nullable[int]] $TimeoutSeconds,

        [ValidateRange(0.1, 3600.0)]
        [double] $IntervalSeconds = 1,

        [ValidateRange(0, 86400)]
        [int] $RetrySeconds = 60,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $waiting = New-Object System.Collections.Generic.List[hashtable]
    }
    process {
        foreach ($session in @(Resolve-HotsetConnection $PSCmdlet $Connection)) {
            foreach ($one in @(Select-HotsetItem $PSCmdlet Id $Id)) { $waiting.Add(@{ Session = $session; Id = $one; Verb = 'job' }) }
        }
    }
    end {
        if (-not $waiting.Count) { return }
        $how = @{
            TimeoutSeconds  = $TimeoutSeconds
            IntervalSeconds = $IntervalSeconds
            RetrySeconds    = $RetrySeconds
        }
        Wait-HotsetStarted $PSCmdlet $waiting.ToArray() ($waiting.Count -gt 1) @how
    }
}

function Stop-HotsetJob {
    <#
    .SYNOPSIS
    Cancels a job: it takes down what it made and ends.
    .DESCRIPTION
    A job that has ended stays as it is. The token needs the right 'operate'.
    .PARAMETER Id
    The job's id, or jobs by the pipeline.
    .PARAMETER Connection
    The server that the job is on. The server that was connected to last if left out; objects of
    Get-HotsetJob know theirs.
    .INPUTS
    System.String, or objects with the properties Id and Server: -Id, -Connection
    .OUTPUTS
    Hotset.Job, as it is once it was told; Wait-HotsetJob waits for its end.
    .EXAMPLE
    Stop-HotsetJob 20261121-083000-tpcc-run
    .EXAMPLE
    Get-HotsetJob | Where-Object State -eq running | Stop-HotsetJob -Confirm
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Id,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $several = $Id.Count -gt 1 -or $PSCmdlet.MyInvocation.ExpectingInput
        foreach ($session in @(Resolve-HotsetConnection $PSCmdlet $Connection)) {
            foreach ($one in @(Select-HotsetItem $PSCmdlet Id $Id)) {
                if (-not $PSCmdlet.ShouldProcess("$one on $($session.Server)", 'Cancel job')) { continue }
                $answer = Invoke-HotsetApi $session Post '/api/v1/jobs/{id}/cancel' @{ id = $one }
                if ($answer -is [System.Management.Automation.ErrorRecord]) {
                    Write-HotsetFailure $PSCmdlet $answer $several
                    continue
                }
                ConvertTo-HotsetJob $answer $session.Server
            }
        }
    }
}

function Remove-HotsetJob {
    <#
    .SYNOPSIS
    Forgets a job that has ended, with its result and what it said.
    .DESCRIPTION
    What the job did stays. A running job is not forgotten: Stop-HotsetJob stops it. The token needs
    the right 'operate'.
    .PARAMETER Id
    The job's whole id, or jobs by the pipeline.
    .PARAMETER Connection
    The server that the job is on. The server that was connected to last if left out; objects of
    Get-HotsetJob know theirs.
    .INPUTS
    System.String, or objects with the properties Id and Server: -Id, -Connection
    .OUTPUTS
    None
    .EXAMPLE
    Get-HotsetJob | Where-Object State -eq failed | Remove-HotsetJob
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Id,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $several = $Id.Count -gt 1 -or $PSCmdlet.MyInvocation.ExpectingInput
        foreach ($session in @(Resolve-HotsetConnection $PSCmdlet $Connection)) {
            foreach ($one in @(Select-HotsetItem $PSCmdlet Id $Id)) {
                if (-not $PSCmdlet.ShouldProcess("$one on $($session.Server)", 'Forget job')) { continue }
                $answer = Invoke-HotsetApi $session Delete '/api/v1/jobs/{id}' @{ id = $one }
                if ($answer -is [System.Management.Automation.ErrorRecord]) {
                    Write-HotsetFailure $PSCmdlet $answer $several
                }
            }
        }
    }
}
