# Reports as text.

function Get-HotsetReportText {
    <#
    .SYNOPSIS
    The report of one run, by the server; or of hit ratios, made here.
    #>
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [object[]] $Connection, [psobject[]] $From,
        [string] $Format
    )
    $first = $From[0]
    if ('Hotset.HitRatio' -in $first.PSObject.TypeNames) {
        return ConvertTo-HotsetHitPage $From $Format
    }
    if ($From.Count -gt 1) {
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'SeveralRuns' 'InvalidArgument' `
            "-Run: $($From.Count) runs for one report: name one. Compare-HotsetRun compares several.")
        return
    }
    $name = ConvertTo-HotsetTarget $Caller $first
    if (-not $name) { return }
    if (-not $Connection -and $first.Server) { $Connection = $first.Server }
    $lines = Invoke-HotsetQuery $Caller $Connection 'report run' -Values @{
        run    = $name
        format = $Format
    }
    $lines -join "`n"
}

function ConvertTo-HotsetHitPage {
    <#
    .SYNOPSIS
    Hit ratios as a page, as Markdown or as JSON.
    #>
    param([psobject[]] $From, [string] $Format)
    if ($Format -eq 'json') { return ConvertTo-Json $From -Depth 4 }
    $columns = 'Server', 'Disk', 'Name', 'Reads', 'Writes', 'ReadHitRatio', 'WriteHitRatio', 'HitRatio', 'Bypassed'
    $rows = foreach ($one in $From) {
        $row = [ordered] @{}
        foreach ($name in $columns) {
            $row[$name] = $one.$name
            if ($name -like '*Ratio' -and $null -ne $one.$name) { $row[$name] = '{0:P1}' -f $one.$name }
        }
        [pscustomobject] $row
    }
    if ($Format -eq 'md') {
        $lines = @("| $($columns -join ' | ') |", "|$('---|' * $columns.Count)")
        foreach ($row in $rows) {
            $cells = foreach ($name in $columns) { ([string] $row.$name).Replace('|', '\|') }
            $lines += "| $($cells -join ' | ') |"
        }
        return $lines -join "`n"
    }
    $letters = '<meta charset="utf-8">'
    $style = '<style>body{font-family:sans-serif}td,th{padding:2px 10px;text-align:right}</style>'
    $notes = @($From[0].Denominator) + @($From[0].Notes) | Where-Object { $_ }
    $said = @('<hr>') + @(foreach ($note in $notes) { "<p>$([System.Net.WebUtility]::HtmlEncode($note))</p>" })
    ($rows | ConvertTo-Html -Head "$letters$style<title>Hit ratios</title>" -PostContent $said) -join "`n"
}
