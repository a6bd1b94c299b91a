# The API's JSON as objects: PascalCase names, ratios as doubles, bytes as longs, times as DateTime.

# Names of the API that were met, with how they are shown and what their numbers are.
$script:Names = @{}

# hit_ratio as HitRatio, and whether its numbers are times or ratios; remembered, as a run has
# thousands of the same.
function Get-HotsetName {
    param([string] $Name)
    $known = $script:Names[$Name]
    if ($null -ne $known) { return $known }
    $words = foreach ($word in $Name.Split('_')) {
        if ($word) { $word.Substring(0, 1).ToUpperInvariant() + $word.Substring(1) }
    }
    $kind = ''
    if ($Name -match '^(at|begun|started|ended|window_(start|end)|.*_at)$') { $kind = 'time' }
    # A ratio of 1 is no whole number.
    if ($Name -match '(^|_)(ratio|share|factor|nopm|tpm|s|ms|seconds)(_|$)') { $kind = 'real' }
    $known = @{ Shown = -join $words; Kind = $kind }
    $script:Names[$Name] = $known
    $known
}

# An object of the API under a type's name; hit_ratio becomes HitRatio. Server is where it is from.
function ConvertTo-HotsetObject {
    param($InputObject, [string] $TypeName, [string] $Server)
    if ($null -eq $InputObject) { return }
    $properties = [ordered] @{}
    foreach ($property in $InputObject.PSObject.Properties) {
        $known = $script:Names[$property.Name]
        if ($null -eq $known) { $known = Get-HotsetName $property.Name }
        $value = $property.Value
        # Most values are plain: no function is called for them.
        if ($null -eq $value -or $value -is [bool]) {
            $properties[$known.Shown] = $value
        } elseif ($value -is [double] -and $known.Kind -ne 'time') {
            $properties[$known.Shown] = $value
        } else {
            $properties[$known.Shown] = ConvertTo-HotsetValue $known.Kind $value
        }
    }
    if ($Server -and -not $properties.Contains('Server')) { $properties['Server'] = $Server }
    $object = [pscustomobject] $properties
    if ($TypeName) { $object.PSObject.TypeNames.Insert(0, $TypeName) }
    $object
}

# A value of the API by its own type and by what its name says its numbers are. The two editions
# read JSON differently: a number with a point is a Decimal in one and a Double in the other, a time
# a string or a DateTime. Here both become the same.
function ConvertTo-HotsetValue {
    param([string] $Kind, $Value)
    if ($null -eq $Value -or $Value -is [bool]) { return $Value }
    if ($Value -is [string]) {
        if ($Value -notmatch '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$') { return $Value }
        return [datetimeoffset]::Parse($Value, [cultureinfo]::InvariantCulture).LocalDateTime
    }
    if ($Value -is [array]) {
        return , @(foreach ($one in $Value) { ConvertTo-HotsetValue $Kind $one })
    }
    if ($Value -is [System.Management.Automation.PSCustomObject]) {
        return ConvertTo-HotsetObject $Value
    }
    if ($Value -is [datetime]) { return $Value.ToLocalTime() }
    # Seconds since 1970; a smaller number under such a name is seconds since a beginning.
    if ($Kind -eq 'time' -and $Value -gt 1e9) {
        return [datetimeoffset]::FromUnixTimeMilliseconds([long] (1000 * $Value)).LocalDateTime
    }
    if ($Kind -eq 'real' -or $Value -is [decimal] -or $Value -is [double]) { return [double] $Value }
    [long] $Value
}

# An operation's result as the objects that its cmdlet returns. Where the result is a list, its
# entries; what stands beside the list is on each of them, and notes become warnings.
function ConvertTo-HotsetOutput {
    param([string] $Operation, $Answer, [string] $Server)
    if ($null -eq $Answer) { return }
    $known = $script:Operations[$Operation]
    # An operation of a newer server, whose job is waited for here.
    if ($null -eq $known) { return ConvertTo-HotsetObject $Answer '' $Server }
    if ($known.Raw) { return ([string] $Answer).TrimEnd() -split "`r?`n" }
    if (-not $known.Type) { return $Answer.lines }
    if ($known.Type -eq 'Hotset.Job') {
        if ($known.Items) { $Answer = $Answer.jobs }
        foreach ($job in $Answer) { ConvertTo-HotsetJob $job $Server }
        return
    }
    if ($Operation -eq 'tpcc run') { return ConvertTo-HotsetTpcc $Answer $Server }
    if ($Operation -eq 'report hit-ratio') { return ConvertTo-HotsetHitRatio $Answer $Server }
    if (-not $known.Items) {
        $whole = ConvertTo-HotsetObject $Answer $known.Type $Server
        if ($known.Type -eq 'Hotset.RunDocument') { Add-HotsetSummary $whole }
        return $whole
    }
    foreach ($note in $Answer.notes) { if ($note) { Write-Warning $note } }
    foreach ($difference in $Answer.differences) {
        if ($difference) { Write-Warning "different set-ups: $difference" }
    }
    $beside = New-Object System.Collections.Generic.List[object]
    foreach ($property in $Answer.PSObject.Properties) {
        $value = $property.Value
        $isMore = $value -is [array] -or $value -is [System.Management.Automation.PSCustomObject]
        if ($property.Name -ne 'schema_version' -and -not $isMore) { $beside.Add($property) }
    }
    foreach ($entry in $Answer.($known.Items)) {
        if ($null -eq $entry) { continue }
        foreach ($property in $beside) {
            if ($null -eq $entry.PSObject.Properties[$property.Name]) {
                Add-Member -InputObject $entry -NotePropertyName $property.Name -NotePropertyValue $property.Value
            }
        }
        ConvertTo-HotsetObject $entry $known.Type $Server
    }
}

# The windows of a run's one arm, with its thresholds and searches for a rate; of a curve one for
# each number of users.
function ConvertTo-HotsetTpcc {
    param($Answer, [string] $Server)
    foreach ($arm in $Answer.arms) {
        foreach ($window in @($arm.curve) + @($arm.repeats)) {
            if ($null -eq $window) { continue }
            $thresholds = @(
                $Answer.thresholds | Where-Object { $_.users -in $null, $window.users }
            )
            Add-Member -InputObject $window -NotePropertyName 'thresholds' -NotePropertyValue $thresholds
            Add-Member -InputObject $window -NotePropertyName 'rates' -NotePropertyValue $arm.rates
            Add-Member -InputObject $window -NotePropertyName 'run' -NotePropertyValue $Answer.run
            ConvertTo-HotsetObject $window 'Hotset.TpccRun' $Server
        }
    }
}

# The lines of a report of hit ratios, the total last; what they all share is on each.
function ConvertTo-HotsetHitRatio {
    param($Answer, [string] $Server)
    $lines = @($Answer.total)
    if ($Answer.by -ne 'total') { $lines = @($Answer.rows) + $lines }
    foreach ($line in $lines) {
        foreach ($name in 'disk', 'tier', 'by', 'begun', 'ended', 'denominator', 'notes') {
            Add-Member -InputObject $line -NotePropertyName $name -NotePropertyValue $Answer.$name
        }
        ConvertTo-HotsetObject $line 'Hotset.HitRatio' $Server
    }
}

# A run's results in a few lines, for its view: Results, Warmed, Advice.
function Add-HotsetSummary {
    param($Document)
    $lines = @(
        foreach ($arm in $Document.Arms) {
            $unit = 'NOPM'
            $rates = @($arm.Repeats | ForEach-Object { $_.Nopm })
            if ($arm.Workload -eq 'sql') {
                $unit = 'TPS'
                $rates = @($arm.Repeats | ForEach-Object { $_.Tpm / 60 })
            }
            $ratios = @($arm.Repeats | ForEach-Object { $_.HitRatio } | Where-Object { $null -ne $_ })
            $average = ($rates | Measure-Object -Average).Average
            $line = '{0}: {1:N0} {2}' -f $arm.Name, $average, $unit
            if ($ratios.Count) {
                $line += ', hit ratio {0:P1}' -f ($ratios | Measure-Object -Average).Average
            }
            $line
        }
        foreach ($arm in $Document.PowerArms) {
            $seconds = foreach ($repeat in $arm.Repeats) {
                ($repeat.Queries | Measure-Object -Property Seconds -Sum).Sum
            }
            '{0}: TPC-H {1:N1} s' -f $arm.Name, ($seconds | Measure-Object -Average).Average
        }
        foreach ($workload in 'Tpcc', 'Tpch') {
            $factor = $Document.Factors.$workload
            if ($null -ne $factor) {
                $figures = $workload.ToUpperInvariant(), $factor.Ratio, $factor.CiLow, $factor.CiHigh
                $line = '{0}: {1:N2} times as fast ({2:N2} to {3:N2})' -f $figures
                if (-not $factor.Significant) { $line += ', may be chance' }
                $line
            }
        }
    )
    $warmed = ''
    $warmup = $Document.Warmup
    if ($null -ne $warmup) {
        $figures = ($warmup.Bytes / 1GB), $warmup.Seconds, $warmup.MbPerS, $warmup.Method
        $warmed = '{0:N2} GiB in {1:N0} s ({2:N0} MB/s), {3}' -f $figures
    }
    $advice = @(foreach ($one in $Document.Warnings) { "$($one.Text) $($one.Advice)" })
    Add-Member -InputObject $Document -NotePropertyName Results -NotePropertyValue $lines
    Add-Member -InputObject $Document -NotePropertyName Warmed -NotePropertyValue $warmed
    Add-Member -InputObject $Document -NotePropertyName Advice -NotePropertyValue $advice
}

# A size as the server reads it: a number is bytes, and MB is 1024 KB, as PowerShell counts.
function ConvertTo-HotsetSize {
    param([System.Management.Automation.PSCmdlet] $Caller, [string] $Parameter, [object[]] $From)
    foreach ($one in $From) {
        if ($null -eq $one) { continue }
        $number = $one -as [decimal]
        if ($one -is [string]) {
            $one -replace '(?<=^\s*\d[\d.]*\s*)([KMGTP])B(?=(/s)?\s*$)', '$1iB'
        } elseif ($null -ne $number) {
            $number.ToString('0', [cultureinfo]::InvariantCulture)
        } else {
            Write-HotsetUnfit $Caller $Parameter $one 'a number of bytes, or a text such as 100GB'
        }
    }
}

# A time or a span as the server reads it, from a text or from an object that is one.
function ConvertTo-HotsetTime {
    param([System.Management.Automation.PSCmdlet] $Caller, [string] $Parameter, $From)
    if ($null -eq $From -or $From -is [string]) { return $From }
    if ($From -is [timespan]) { return $From.TotalSeconds.ToString('0.###', [cultureinfo]::InvariantCulture) + 's' }
    # With its offset: the server may be in another zone.
    $time = $From -as [datetimeoffset]
    if ($null -ne $time) { return $time.ToString("yyyy-MM-dd'T'HH:mm:sszzz", [cultureinfo]::InvariantCulture) }
    Write-HotsetUnfit $Caller $Parameter $From 'a DateTime, a TimeSpan, or a text such as 8h'
}

# Values of a set in the set's own spelling, which the server knows.
function ConvertTo-HotsetChoice {
    param([string[]] $From)
    foreach ($one in $From) { if ($one) { $one.ToLowerInvariant() } }
}
