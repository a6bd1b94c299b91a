# Jobs of the servers: started, waited for, and their results.

# A job of the API as an object, without its result.
function ConvertTo-HotsetJob {
    param($Answer, [string] $Server)
    if ($null -eq $Answer) { return }
    if ($null -ne $Answer.result) { $Answer = $Answer | Select-Object -Property * -ExcludeProperty result }
    $job = ConvertTo-HotsetObject $Answer 'Hotset.Job' $Server
    $until = $job.Ended
    if ($null -eq $until) { $until = [datetime]::Now }
    Add-Member -InputObject $job -NotePropertyName Duration -NotePropertyValue ($until - $job.Started)
    $job
}

# Starts an operation as a job on the servers, and waits for it unless told not to.
function Invoke-HotsetJob {
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [object[]] $Connection, [string] $Operation,
        [bool] $AsJob = $false, [string] $Shows = '', [hashtable] $Values = @{}
    )
    $sessions = @(Resolve-HotsetConnection $Caller $Connection)
    $several = $sessions.Count -gt 1 -or $Caller.MyInvocation.ExpectingInput
    $waiting = New-Object System.Collections.Generic.List[hashtable]
    foreach ($session in $sessions) {
        $answer = Invoke-HotsetOperation $session $Operation $Values -Starts $true
        if ($answer -is [System.Management.Automation.ErrorRecord]) {
            Write-HotsetFailure $Caller (Add-HotsetPlace $answer $session $sessions) $several
            continue
        }
        if ($AsJob) {
            ConvertTo-HotsetJob $answer $session.Server
        } else {
            $waiting.Add(@{ Session = $session; Id = $answer.id; Verb = $answer.verb; Shows = $Shows; Values = $Values })
        }
    }
    if ($waiting.Count) { Wait-HotsetStarted $Caller $waiting.ToArray() $several }
}

# Puts jobs of these servers on the list of what is waited for.
function Add-HotsetWaiting {
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [System.Collections.Generic.List[hashtable]] $Waiting,
        [object[]] $Connection, [object[]] $Id
    )
    foreach ($session in @(Resolve-HotsetConnection $Caller $Connection)) {
        foreach ($one in @(Select-HotsetItem $Caller Id $Id)) { $Waiting.Add(@{ Session = $session; Id = $one; Verb = 'job' }) }
    }
}

# Waits for jobs, a bar each, and returns their results as they end. A server that does not answer
# is asked again for some time. When the waiting ends before a job does, by Ctrl-C above all, it is
# said that the job goes on and how to stop it.
# Waiting: Hashtables with Session, Id and Verb.
# Several: A job that fails is one error among others.
function Wait-HotsetStarted {
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [hashtable[]] $Waiting, [bool] $Several = $false,
        [int] $TimeoutSeconds, [double] $IntervalSeconds = 1, [int] $RetrySeconds = 60
    )
    if (-not $TimeoutSeconds) { $TimeoutSeconds = [int]::MaxValue }
    $rest = New-Object System.Collections.Generic.List[hashtable]
    foreach ($one in $Waiting) {
        $rest.Add($one)
        $one.Bar = $rest.Count
    }
    $watch = [System.Diagnostics.Stopwatch]::StartNew()
    try {
        while ($rest.Count) {
            foreach ($one in $rest.ToArray()) {
                $failure = $null
                $answer = Get-HotsetAnswer $one $RetrySeconds ($TimeoutSeconds - $watch.Elapsed.TotalSeconds)
                if ($answer -is [System.Management.Automation.ErrorRecord]) { $answer, $failure = $null, $answer }
                if ($null -ne $answer) {
                    $one.Verb = $answer.verb
                    if ($answer.state -eq 'running') {
                        Write-HotsetBar $one $answer
                        continue
                    }
                    $failure = Get-HotsetJobError $answer $one.Session.Server
                }
                if ($null -eq $answer -and $null -eq $failure) { continue }
                $null = $rest.Remove($one)
                Write-Progress -Id $one.Bar -Activity 'hotset' -Completed
                if ($null -ne $answer) {
                    Write-HotsetNote $answer
                } else {
                    Write-Warning "Job $($one.Id) is no longer waited for: Get-HotsetJob $($one.Id) tells how it is."
                }
                # A check or a threshold that does not hold has found something all the same.
                $hasFound = $answer.result -and $null -eq $answer.result.lines
                if ($null -eq $failure -or $hasFound) { Get-HotsetResult $one $answer }
                # What was found is not lost by an error that ends the call.
                if ($null -ne $failure) { Write-HotsetFailure $Caller (Add-HotsetPlace $failure $one.Session $Waiting) ($Several -or $hasFound) }
            }
            if ($rest.Count -and $watch.Elapsed.TotalSeconds -ge $TimeoutSeconds) {
                $late = $rest.ToArray()
                $rest.Clear()
                foreach ($one in $late) {
                    Write-Progress -Id $one.Bar -Activity 'hotset' -Completed
                    $how = if ($one.LostAt) { 'is not known to have ended' } else { 'goes on' }
                    $failure = Get-HotsetErrorRecord 'Timeout' 'OperationTimeout' `
                        "Job $($one.Id) ($($one.Verb)) on $($one.Session.Server) $how after $TimeoutSeconds s." $one.Id
                    Write-HotsetFailure $Caller $failure $Several
                }
            }
            if ($rest.Count) { Start-Sleep -Milliseconds ([int] (1000 * $IntervalSeconds)) }
        }
    } finally {
        # The host itself is told: a pipeline that is being stopped takes no more messages.
        foreach ($one in $rest) {
            $Caller.Host.UI.WriteWarningLine("Job $($one.Id) goes on; Stop-HotsetJob $($one.Id) stops it.")
        }
    }
}

# How a job is now; nothing while its server does not answer, until that has taken too long.
function Get-HotsetAnswer {
    param([hashtable] $One, [int] $RetrySeconds, [double] $LeftSeconds)
    $asked = [datetime]::UtcNow
    $limit = [math]::Ceiling([math]::Max(1, [math]::Min(30, $LeftSeconds)))
    $answer = Invoke-HotsetApi $One.Session Get '/api/v1/jobs/{id}' @{ id = $One.Id } -TimeoutSeconds $limit
    if ($answer -isnot [System.Management.Automation.ErrorRecord]) {
        $One.LostAt = $null
        # The newest of all is another one soon.
        $One.Id = $answer.id
        return $answer
    }
    if ($answer.FullyQualifiedErrorId -notmatch '^Hotset\.(NotReached|Http503)') { return $answer }
    $isFirst = $null -eq $One.LostAt
    if ($isFirst) { $One.LostAt = $asked }
    if (([datetime]::UtcNow - $One.LostAt).TotalSeconds -ge $RetrySeconds) { return $answer }
    if ($isFirst) { Write-Warning "$($answer.Exception.Message) Trying again for $RetrySeconds s; the job goes on." }
}

# The result of a job, as objects: what it measured, or the thing that it made or changed.
function Get-HotsetResult {
    param([hashtable] $One, $Answer)
    $server = $One.Session.Server
    if ($One.Shows -and -not $One.Values.dry_run) {
        $there = @{}
        $told = @{ 'tier status' = 'disk', 'machine'; 'database show' = 'engine', 'dsn', 'password' }[$One.Shows]
        foreach ($name in $told) { $there[$name] = $One.Values[$name] }
        $now = Invoke-HotsetOperation $One.Session $One.Shows $there
        if ($now -is [System.Management.Automation.ErrorRecord]) {
            Write-Warning "It is done, but cannot be shown: $($now.Exception.Message)"
            return
        }
        return ConvertTo-HotsetOutput $One.Shows $now $server | Add-HotsetMachine $One.Values.machine -Dsn $there.dsn
    }
    $result = $Answer.result
    # What was cached before is not fetched: what counts is what is cached now. A cache in use drops some.
    $cached = $result.cached_share * ($result.planned_bytes + $result.left_out_bytes)
    if ($result.planned_bytes -and $cached -lt 0.99 * $result.planned_bytes) {
        Write-Warning ("Job $($One.Id): {0:N1} MiB were planned, {1:N1} MiB are cached; (Get-HotsetJob $($One.Id)).Messages tells more." -f ($result.planned_bytes / 1MB), ($cached / 1MB))
    }
    ConvertTo-HotsetOutput $Answer.verb $result $server
}

# A job's progress, with percent and time left where the server knows them.
function Write-HotsetBar {
    param([hashtable] $One, $Answer)
    $status = $Answer.progress
    if (-not $status) { $status = 'started' }
    $bar = @{
        Id               = $One.Bar
        Activity         = "hotset $($Answer.verb) on $($One.Session.Server)"
        Status           = $status
        CurrentOperation = $One.Id
    }
    if ($Answer.total -gt 0) {
        $bar.PercentComplete = [int] [math]::Min(100, [math]::Max(0, 100 * $Answer.done / $Answer.total))
    }
    if ($null -ne $Answer.eta_s) { $bar.SecondsRemaining = [int] $Answer.eta_s }
    Write-Progress @bar
}

# What a job said: notes as warnings, the rest for -Verbose.
function Write-HotsetNote {
    param($Answer)
    foreach ($line in $Answer.messages) {
        if ($line -match '^note: ') {
            Write-Warning ($line -replace '^note: ')
        } elseif ($line) {
            Write-Verbose $line
        }
    }
}

# The error of a job that did not get done; nothing of one that did.
function Get-HotsetJobError {
    param($Answer, [string] $Server)
    $how = switch ($Answer.state) {
        'done' { '' }
        'failed' { 'failed' }
        'interrupted' { 'was interrupted' }
        'lost' { 'was lost' }
        default { [string] $Answer.state }
    }
    if (-not $how) { return }
    $why = $Answer.cause
    if ($null -ne $Answer.problem) { $why = Format-HotsetProblem $Answer.problem }
    $id, $category = Get-HotsetCause $Answer.problem 'JobFailed' 'OperationStopped'
    Get-HotsetErrorRecord $id $category "Job $($Answer.id) ($($Answer.verb)) $($how): $why" `
        (ConvertTo-HotsetJob $Answer $Server)
}
