# Values that the server offers when Tab is pressed.

# Per server and question: when it was answered, and the values.
$script:Offers = @{}

# Has the parameters of all cmdlets completed whose values the server can tell.
function Register-HotsetCompleter {
    # Called with the command, the parameter, the word, the syntax tree and what is bound already.
    $offer = { Complete-HotsetValue $args[1] $args[2] $args[4] }
    foreach ($name in $script:Completed.Keys) {
        Register-ArgumentCompleter -CommandName $script:Completed[$name] -ParameterName $name -ScriptBlock $offer
    }
    Register-ArgumentCompleter -CommandName 'Get-HotsetJob', 'Wait-HotsetJob', 'Stop-HotsetJob', 'Remove-HotsetJob' -ParameterName Id -ScriptBlock $offer
    Register-ArgumentCompleter -CommandName 'Export-HotsetReport', 'Show-HotsetReport' -ParameterName Run -ScriptBlock $offer
    Register-ArgumentCompleter -CommandName Compare-HotsetRun -ParameterName Reference -ScriptBlock $offer
    $all = @(foreach ($one in $script:Operations.Values) { $one.Cmdlet }) + 'Wait-HotsetJob', 'Show-HotsetReport', 'Disconnect-Hotset'
    Register-ArgumentCompleter -CommandName $all -ParameterName Connection -ScriptBlock $offer
}

# The values that begin with a word. Nothing, and no error, when no server answers.
function Complete-HotsetValue {
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

# All values of a parameter, remembered for some seconds.
function Get-HotsetOffer {
    param([string] $Parameter, $Bound)
    if ($Parameter -eq 'Connection') {
        foreach ($session in $script:Sessions) { @{ Value = $session.Server; Tip = $session.Uri } }
        return
    }
    $session = $script:Sessions | Select-Object -Last 1
    if ($Bound['Connection']) { $session = Find-HotsetSession @($Bound['Connection'])[0] }
    if ($null -eq $session) { return }
    $machine = [string] $Bound['Machine']
    $dsn = [string] $Bound['Dsn']
    $key = "$($session.Uri) $Parameter $machine $dsn"
    $known = $script:Offers[$key]
    if ($null -ne $known -and ([datetime]::UtcNow - $known.At).TotalSeconds -lt 10) { return $known.Offered }
    try {
        $values = @(Read-HotsetOffer $session $Parameter $machine $Bound)
    } catch {
        $values = @()
    }
    $script:Offers[$key] = @{ At = [datetime]::UtcNow; Offered = $values }
    $values
}

# Where the server tells the values of a parameter: the place, the list of its answer, what the value is
# and what is told about it.
$script:OfferedBy = @{
    Disk   = 'Post', '/api/v1/tier/status', 'disks', 'disk', ('kind', 'state')
    Id     = 'Get', '/api/v1/jobs', 'jobs', 'id', ('verb', 'state')
    Model  = 'Post', '/api/v1/disk/models', 'models', 'name', ('title')
    Name   = 'Post', '/api/v1/warmup/schedule/list', 'schedules', 'name', ('when')
    Resume = 'Post', '/api/v1/warmup/plans', 'jobs', 'job', ('disk', 'state')
    Run    = 'Get', '/api/v1/runs', 'runs', 'run', ('experiment', 'state')
}

# The values that the server knows. It has a second to answer.
function Read-HotsetOffer {
    param([psobject] $Session, [string] $Parameter, [string] $Machine, $Bound)
    if ($Parameter -in 'Target', 'Pin', 'Exclude') { return Read-HotsetTargetOffer $Session $Bound }
    $of = @{ FlashName = 'Disk'; Reference = 'Run' }[$Parameter]
    if (-not $of) { $of = $Parameter }
    $method, $path, $list, $value, $about = $script:OfferedBy[$of]
    if ($of -in 'Run', 'Resume') { @{ Value = 'last'; Tip = 'the newest of all' } }
    $asked = @{}
    if ($method -eq 'Get') { $asked.limit = 50 }
    if ($of -in 'Disk', 'Name') { $asked.machine = $Machine }
    foreach ($one in (Invoke-HotsetApi $Session $method $path $asked -TimeoutSeconds 1).$list) {
        @{ Value = $one.$value; Tip = @(foreach ($name in $about) { $one.$name }) -join ', ' }
    }
}

# What can be cached: heat, parts of the disk, and the databases, tables and indexes of the database
# server of -Dsn.
function Read-HotsetTargetOffer {
    param([psobject] $Session, $Bound)
    @{ Value = 'heat'; Tip = 'the hottest blocks first' }
    @{ Value = 'region:'; Tip = 'a part of the disk: region:OFFSET+LENGTH' }
    @{ Value = 'snapshot:'; Tip = 'what a snapshot lists' }
    $dsn = [string] $Bound['Dsn']
    if (-not $dsn) { return }
    # What cannot be asked is not offered; the rest is.
    try {
        $credential = $Bound['Credential'] -as [pscredential]
        $login = Resolve-HotsetLogin $null $dsn $credential ([string] $Bound['Engine'])
        $asked = @{ dsn = $login.Dsn; password = $login.Password; engine = $login.Engine; count = 10000 }
        foreach ($one in (Invoke-HotsetApi $Session Post '/api/v1/warmup/targets' $asked -TimeoutSeconds 1).targets) {
            $tip = ([string] $one.target).Split(':')[0]
            if ($null -ne $one.bytes) { $tip += ', {0:N1} MiB' -f ($one.bytes / 1MB) }
            @{ Value = $one.target; Tip = $tip }
        }
    } catch {
        return
    }
}
