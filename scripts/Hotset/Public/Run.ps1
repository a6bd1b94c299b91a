function Get-HotsetRun {
    <#
    .SYNOPSIS
    The archive of experiments: all runs, or what one of them measured.
    .DESCRIPTION
    The list has one line a run; a run that is named comes with everything that it measured.
    Get-HotsetRunResult does the latter alone.
    .PARAMETER Run
    A run's id, the beginning of one, or last; with a star (2026*) the list of those it fits. The list
    of all if left out.
    .PARAMETER Limit
    How many, the newest.
    .PARAMETER Connection
    The servers to ask, one or several: what Connect-Hotset or Get-HotsetConnection returned, or
    addresses. The server that was connected to last if left out.
    .INPUTS
    System.String, or objects with the property Run: -Run
    .OUTPUTS
    Hotset.Run for each run of the list; Hotset.RunDocument, with everything, for one.
    .EXAMPLE
    Get-HotsetRun | Where-Object Significant | Sort-Object Factor -Descending
    .EXAMPLE
    (Get-HotsetRun last).Experiment
    .EXAMPLE
    'last' | Get-HotsetRun
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Run', 'Hotset.RunDocument')]
    param(
        [Parameter(Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Run,

        [ValidateNotNull()]
        [ValidateRange(1, 10000)]
        [Nullable[int]] $Limit,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($one in @(Select-HotsetItem $PSCmdlet Run $Run)) {
            $like = ''
            if ($one -match '[*?]') { $like, $one = "Run=$one", $null }
            if (-not $one) {
                Invoke-HotsetQuery $PSCmdlet $Connection 'runs list' -Like $like -Values @{ limit = $Limit }
                continue
            }
            Invoke-HotsetQuery $PSCmdlet $Connection 'runs show' -Values @{ run = $one }
        }
    }
}

function Compare-HotsetRun {
    <#
    .SYNOPSIS
    How many times faster each arm of a run was than that of the reference, with its interval.
    .DESCRIPTION
    Runs that come by the pipeline as objects are put into the order of their time, so that newer ones
    are measured against the oldest, whichever way they were listed. Runs that are named keep their
    order. Either way -Reference names another reference.
    .PARAMETER Run
    The runs to compare, two or more with -Reference: ids, or objects of Get-HotsetRun.
    .PARAMETER Reference
    The run that the others are measured against.
    .PARAMETER Force
    Compares runs with different set-ups, too; otherwise those are refused, and named.
    .PARAMETER Connection
    The servers to ask, one or several: what Connect-Hotset or Get-HotsetConnection returned, or
    addresses. The server that was connected to last if left out.
    .INPUTS
    System.String, or objects with the properties Run and StartedAt: -Run
    .OUTPUTS
    Hotset.Comparison: a line for each arm, with SpeedRatio, CiLow, CiHigh (95 %) and Verdict.
    .EXAMPLE
    Compare-HotsetRun 20261120-2015, last
    .EXAMPLE
    Get-HotsetRun | Select-Object -First 2 | Compare-HotsetRun -Force
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Comparison')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Run,

        [ValidateNotNullOrEmpty()]
        [string] $Reference,

        [switch] $Force,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $given = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Run) {
            if (ConvertTo-HotsetTarget $PSCmdlet $one) { $given.Add($one) }
        }
    }
    end {
        if (-not $given.Count -and $PSCmdlet.MyInvocation.ExpectingInput) { return }
        $ordered = $given.ToArray()
        if (-not @($ordered | Where-Object { $null -eq $_.StartedAt }).Count) {
            $ordered = @($ordered | Sort-Object -Property StartedAt)
        }
        $runs = New-Object System.Collections.Generic.List[string]
        if ($Reference) { $runs.Add($Reference) }
        foreach ($one in $ordered) {
            $name = [string] $one
            if ($one.Run) { $name = [string] $one.Run }
            if ($name -ne $Reference) { $runs.Add($name) }
        }
        $origin = Get-HotsetOrigin $PSCmdlet $Connection $ordered
        if ($origin) { $Connection = $origin }
        Invoke-HotsetQuery $PSCmdlet $Connection 'runs compare' -Values @{
            run   = $runs.ToArray()
            force = $Force
        }
    }
}

function Export-HotsetReport {
    <#
    .SYNOPSIS
    Writes the report of a run, or of hit ratios, to a file.
    .DESCRIPTION
    The server makes the report afresh. Hit ratios are made into a page here.
    .PARAMETER Run
    A run's id, the beginning of one, or last; objects of Get-HotsetRun; or the objects of
    Get-HotsetHitRatio.
    .PARAMETER Path
    The file to write. One that exists is overwritten with -Force only.
    .PARAMETER Format
    An HTML page, Markdown, or all values as JSON. Told by the end of -Path if left out.
    .PARAMETER Force
    Overwrites the file.
    .PARAMETER PassThru
    Returns the file.
    .PARAMETER Connection
    The server that keeps the run. The server that was connected to last if left out.
    .INPUTS
    System.String, or objects of Get-HotsetRun or Get-HotsetHitRatio: -Run
    .OUTPUTS
    System.IO.FileInfo with -PassThru, otherwise nothing.
    .EXAMPLE
    Export-HotsetReport last -Path report.html -PassThru | Invoke-Item
    .EXAMPLE
    Get-HotsetHitRatio shop -By file | Export-HotsetReport -Path hits.html
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType([System.IO.FileInfo])]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Run,

        [Parameter(Mandatory, Position = 1)]
        [string] $Path,

        [ValidateSet('html', 'md', 'json')]
        [string] $Format,

        [switch] $Force,

        [switch] $PassThru,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $given = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Run) { $given.Add($one) }
    }
    end {
        if (-not $given.Count -and $PSCmdlet.MyInvocation.ExpectingInput) { return }
        $file = $PSCmdlet.GetUnresolvedProviderPathFromPSPath($Path)
        if (-not $Force -and (Test-Path -LiteralPath $file)) {
            Write-HotsetFailure $PSCmdlet (Get-HotsetErrorRecord 'FileExists' 'ResourceExists' `
                    "-Path $($Path): there is such a file; add -Force to overwrite it." $file)
        }
        if (-not $Format) {
            $Format = switch ([System.IO.Path]::GetExtension($file)) {
                '.md' { 'md' }
                '.json' { 'json' }
                default { 'html' }
            }
        }
        $text = Get-HotsetReportText $PSCmdlet $Connection $given.ToArray() $Format
        if (-not $text -or -not $PSCmdlet.ShouldProcess($file, 'Write report')) { return }
        # With a mark: Windows PowerShell and its editors take a file without one for another code.
        try {
            [System.IO.File]::WriteAllText($file, $text, [System.Text.UTF8Encoding]::new($true))
        } catch {
            Write-HotsetFailure $PSCmdlet (Get-HotsetErrorRecord 'NotWritten' 'WriteError' `
                "-Path $($Path): $($_.Exception.GetBaseException().Message)" $file)
        }
        if ($PassThru) { Get-Item -LiteralPath $file }
    }
}

function Show-HotsetReport {
    <#
    .SYNOPSIS
    Opens the report of a run, or of hit ratios, in the browser.
    .DESCRIPTION
    The page is written to the folder for temporary files first.
    .PARAMETER Run
    A run's id, the beginning of one, or last; objects of Get-HotsetRun; or the objects of
    Get-HotsetHitRatio.
    .PARAMETER Connection
    The server that keeps the run. The server that was connected to last if left out.
    .INPUTS
    System.String, or objects of Get-HotsetRun or Get-HotsetHitRatio: -Run
    .OUTPUTS
    None
    .EXAMPLE
    Show-HotsetReport last
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [ValidateNotNullOrEmpty()]
        [object[]] $Run,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $given = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Run) { $given.Add($one) }
    }
    end {
        if (-not $given.Count -and $PSCmdlet.MyInvocation.ExpectingInput) { return }
        $text = Get-HotsetReportText $PSCmdlet $Connection $given.ToArray() 'html'
        if (-not $text) { return }
        $name = "hotset-$([guid]::NewGuid().ToString('N')).html"
        $file = Join-Path ([System.IO.Path]::GetTempPath()) $name
        [System.IO.File]::WriteAllText($file, $text)
        Invoke-Item -LiteralPath $file
    }
}
