# Reports as texts and files, and the order of the runs that are compared.

# Runs that came as objects from the oldest to the newest, whichever way they were listed; those that
# are named in the order of their names. The reference is first.
function Get-HotsetRunOrder {
    param([object[]] $From, [string] $Reference)
    if (-not @($From | Where-Object { $null -eq $_.StartedAt }).Count) {
        $From = @($From | Sort-Object -Property StartedAt)
    }
    $names = @(foreach ($one in $From) { ConvertTo-HotsetTarget $null Run $one })
    if (-not $Reference) { return $names }
    @($Reference) + @($names | Where-Object { $_ -ne $Reference })
}

# The file of a report, which may not be there unless it is to be overwritten.
function Get-HotsetReportFile {
    param([System.Management.Automation.PSCmdlet] $Caller, [string] $Path, [bool] $Force)
    $file = $Caller.GetUnresolvedProviderPathFromPSPath($Path)
    $isFolder = Test-Path -LiteralPath $file -PathType Container
    if ($isFolder -or -not (Test-Path -LiteralPath ([System.IO.Path]::GetDirectoryName($file)) -PathType Container)) {
        $what = if ($isFolder) { 'this is a folder' } else { 'its folder is not there' }
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'NotWritten' 'WriteError' "-Path $($Path): $what; name a file in a folder." $file)
    }
    if (-not $Force -and (Test-Path -LiteralPath $file)) {
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'FileExists' 'ResourceExists' `
                "-Path $($Path): there is such a file; add -Force to overwrite it." $file)
    }
    $file
}

# Writes a report with a mark: Windows PowerShell and its editors take a file without one for another
# code.
function Write-HotsetReport {
    param([System.Management.Automation.PSCmdlet] $Caller, [string] $File, [string] $Text)
    try {
        [System.IO.File]::WriteAllText($File, $Text, [System.Text.UTF8Encoding]::new($true))
    } catch {
        $global:Error.RemoveAt(0)
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'NotWritten' 'WriteError' `
                "-Path $($File): $($_.Exception.GetBaseException().Message)" $File)
    }
}

# The report of one run, by the server; or of hit ratios, made here. Its form is told by the file's
# ending if by nothing else.
function Get-HotsetReportText {
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [object[]] $Connection, [psobject[]] $From,
        [string] $File, [string] $Format
    )
    if (-not $Format) { $Format = if ($File -match '\.(md|json)$') { $Matches[1].ToLowerInvariant() } else { 'html' } }
    $first = $From[0]
    if ('Hotset.HitRatio' -in $first.PSObject.TypeNames) { return ConvertTo-HotsetHitPage $From $Format }
    if ($From.Count -gt 1) {
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'SeveralRuns' 'InvalidArgument' `
            "-Run: $($From.Count) runs for one report: name one. Compare-HotsetRun compares several.")
        return
    }
    $name = ConvertTo-HotsetTarget $Caller Run $first
    if (-not $name) { return }
    Assert-HotsetPlace $Caller $Connection $first
    if (-not $Connection -and $first.Server) { $Connection = $first.Server }
    $lines = Invoke-HotsetQuery $Caller $Connection 'report run' -Values @{
        run    = $name
        format = $Format
    }
    $lines -join "`n"
}

# Hit ratios as a page, as Markdown or as JSON.
function ConvertTo-HotsetHitPage {
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
