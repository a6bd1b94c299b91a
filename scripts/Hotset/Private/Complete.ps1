# Values that the server offers when Tab is pressed.

# Per server and question: when it was answered, and the values.
$script:Offers = @{}

function Register-HotsetCompleter {
    <#
    .SYNOPSIS
    Has the parameters of all cmdlets completed whose values the server can tell.
    #>
    # Called with the command, the parameter, the word, the syntax tree and what is bound already.
    $offer = { Complete-HotsetValue $args[1] $args[2] $args[4] }
    foreach ($name in $script:Completed.Keys) {
        Register-ArgumentCompleter -CommandName $script:Completed[$name] -ParameterName $name -ScriptBlock $offer
    }
    $jobs = 'Get-HotsetJob', 'Wait-HotsetJob', 'Stop-HotsetJob', 'Remove-HotsetJob'
    Register-ArgumentCompleter -CommandName $jobs -ParameterName Id -ScriptBlock $offer
    $runs = 'Get-HotsetRun', 'Compare-HotsetRun', 'Export-HotsetReport', 'Show-HotsetReport'
    Register-ArgumentCompleter -CommandName $runs -ParameterName Run -ScriptBlock $offer
    Register-ArgumentCompleter -CommandName Compare-HotsetRun -ParameterName Reference -ScriptBlock $offer
    Register-ArgumentCompleter -CommandName Get-HotsetHitRatio -ParameterName Disk -ScriptBlock $offer
    $all = @(foreach ($one in $script:Operations.Values) { $one.Cmdlet }) + $jobs + $runs + 'Disconnect-Hotset'
    Register-ArgumentCompleter -CommandName $all -ParameterName Connection -ScriptBlock $offer
}

function Complete-HotsetValue {
    <#
    .SYNOPSIS
    The values that begin with a word. Nothing, and no error, when no server answers.
    #>
    param([string] $Parameter, [string] $Word, $Bound)
    $begin = $Word.Trim("'", '"')
    foreach ($one in Get-HotsetOffer $Parameter $Bound) {
        if (-not ([string] $one.Value).StartsWith($begin, [System.StringComparison]::OrdinalIgnoreCase)) { continue }
        if (-not $one.Value) { continue }
        # 5.1 takes no empty tip.
        $tip = [string] $one.Tip
        if (-not $tip) { $tip = $one.Value }
        $text = $one.Value
        if ($text -match '[\s''"`$(){};,|&<>@#]') { $text = "'$($text.Replace("'", "''"))'" }
        New-Object System.Management.Automation.CompletionResult $text, $one.Value, 'ParameterValue', $tip
    }
}

function Get-HotsetOffer {
    <#
    .SYNOPSIS
    All values of a parameter, remembered for some seconds.
    #>
    param([string] $Parameter, $Bound)
    if ($Parameter -eq 'Connection') {
        foreach ($session in $script:Sessions) { @{ Value = $session.Server; Tip = $session.Uri } }
        return
    }
    $session = $null
    if ($script:Sessions.Count) { $session = $script:Sessions[$script:Sessions.Count - 1] }
    if ($null -ne $Bound -and $Bound['Connection']) {
        $named = @($Bound['Connection'])
        $session = Find-HotsetSession $named[0]
    }
    if ($null -eq $session) { return }
    $machine = [string] $Bound['Machine']
    $dsn = [string] $Bound['Dsn']
    $key = "$($session.Uri) $Parameter $machine $dsn"
    $known = $script:Offers[$key]
    if ($null -ne $known -and ([datetime]::UtcNow - $known.At).TotalSeconds -lt 10) { return $known.Offered }
    $values = @()
    try {
        $values = @(Read-HotsetOffer $session $Parameter $machine $Bound)
    } catch {
        $values = @()
    }
    $script:Offers[$key] = @{ At = [datetime]::UtcNow; Offered = $values }
    $values
}

function Read-HotsetOffer {
    <#
    .SYNOPSIS
    The values that the server knows. It has a second to answer.
    #>
    param([psobject] $Session, [string] $Parameter, [string] $Machine, $Bound)
    $there = @{ machine = $Machine }
    switch ($Parameter) {
        'Id' {
            foreach ($job in (Invoke-HotsetApi $Session Get '/api/v1/jobs' @{ limit = 50 } -TimeoutSeconds 1).jobs) {
                @{ Value = $job.id; Tip = "$($job.verb), $($job.state)" }
            }
        }
        { $_ -in 'Run', 'Reference' } {
            @{ Value = 'last'; Tip = 'the newest run' }
            foreach ($run in (Invoke-HotsetApi $Session Get '/api/v1/runs' @{ limit = 50 } -TimeoutSeconds 1).runs) {
                @{ Value = $run.run; Tip = "$($run.experiment), $($run.state)" }
            }
        }
        { $_ -in 'Disk', 'FlashName' } {
            foreach ($disk in (Invoke-HotsetApi $Session Post '/api/v1/tier/status' $there -TimeoutSeconds 1).disks) {
                @{ Value = $disk.disk; Tip = "$($disk.kind), $($disk.state)" }
            }
        }
        'Name' {
            $found = Invoke-HotsetApi $Session Post '/api/v1/warmup/schedule/list' $there -TimeoutSeconds 1
            foreach ($one in $found.schedules) { @{ Value = $one.name; Tip = $one.when } }
        }
        'Resume' {
            @{ Value = 'last'; Tip = 'the newest plan' }
            foreach ($plan in (Invoke-HotsetApi $Session Post '/api/v1/warmup/plans' @{} -TimeoutSeconds 1).jobs) {
                @{ Value = $plan.job; Tip = "$($plan.disk), $($plan.state)" }
            }
        }
        'Model' {
            foreach ($model in (Invoke-HotsetApi $Session Post '/api/v1/disk/models' @{} -TimeoutSeconds 1).models) {
                @{ Value = $model.name; Tip = $model.title }
            }
        }
        { $_ -in 'Target', 'Pin', 'Exclude' } { Read-HotsetTargetOffer $Session $Bound }
    }
}

function Read-HotsetTargetOffer {
    <#
    .SYNOPSIS
    What can be cached: heat, parts of the disk, and what the database server of -Dsn has.
    #>
    param([psobject] $Session, $Bound)
    @{ Value = 'heat'; Tip = 'the hottest blocks first' }
    @{ Value = 'region:'; Tip = 'a part of the disk: region:OFFSET+LENGTH' }
    @{ Value = 'snapshot:'; Tip = 'what a snapshot lists' }
    $dsn = [string] $Bound['Dsn']
    if (-not $dsn) { return }
    # What cannot be asked is not offered; the rest is.
    try { Read-HotsetDatabaseOffer $Session $dsn $Bound } catch { return }
}

function Read-HotsetDatabaseOffer {
    <#
    .SYNOPSIS
    The databases of a server, and the tables and indexes of the one that -Dsn names.
    #>
    param([psobject] $Session, [string] $Dsn, $Bound)
    $credential = $Bound['Credential'] -as [pscredential]
    $login = Resolve-HotsetLogin $null $Dsn $credential ([string] $Bound['Engine'])
    $asked = @{ dsn = $login.Dsn; password = $login.Password; engine = $login.Engine; count = 10000 }
    foreach ($one in (Invoke-HotsetApi $Session Post '/api/v1/warmup/targets' $asked -TimeoutSeconds 1).targets) {
        $tip = ([string] $one.target).Split(':')[0]
        if ($null -ne $one.bytes) { $tip += ', {0:N1} MiB' -f ($one.bytes / 1MB) }
        @{ Value = $one.target; Tip = $tip }
    }
}
