# Jobs of the server, and what they came to.

function ConvertTo-HotsetJob {
    <#
    .SYNOPSIS
    A job of the API as an object, without its result.
    #>
    param($Answer)
    if ($null -eq $Answer) { return }
    $kept = $Answer | Select-Object -Property * -ExcludeProperty result
    ConvertTo-HotsetObject $kept 'Hotset.Job'
}

function ConvertTo-HotsetResult {
    <#
    .SYNOPSIS
    What a job that is done came to, under a type's name of its verb: Hotset.TpccRun and so on
    #>
    param($Answer)
    if ($null -eq $Answer.result) { return }
    $verb = [cultureinfo]::InvariantCulture.TextInfo.ToTitleCase($Answer.verb) -replace '[ -]'
    $result = $Answer.result
    if ($verb -eq 'TpccRun') {
        # The window's figures lie one step deeper, beside the conditions.
        Add-Member -InputObject $result.result -NotePropertyName conditions -NotePropertyValue $result.conditions
        $result = $result.result
    }
    ConvertTo-HotsetObject $result "Hotset.$verb"
}

function Complete-HotsetJob {
    <#
    .SYNOPSIS
    The job that was started, or, after it, its result.
    #>
    param($Answer, [bool] $AsJob = $false)
    if ($null -eq $Answer) { return }
    if ($AsJob) { return ConvertTo-HotsetJob $Answer }
    Wait-HotsetJob -Id $Answer.id
}
