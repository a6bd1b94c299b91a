# PSScriptAnalyzer finds nothing in the module.
Describe 'PSScriptAnalyzer' {
    It 'finds nothing' {
        $settings = Join-Path $PSScriptRoot '../PSScriptAnalyzerSettings.psd1'
        $found = Invoke-ScriptAnalyzer -Path (Join-Path $PSScriptRoot '../Hotset') -Recurse -Settings $settings
        $found | ForEach-Object { "$($_.ScriptName):$($_.Line) $($_.RuleName) $($_.Message)" } | Should -BeNullOrEmpty
    }
}
