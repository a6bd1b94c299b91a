# PSScriptAnalyzer, where it is installed, finds nothing in the module.
BeforeDiscovery {
    $script:missing = -not (Get-Module -ListAvailable PSScriptAnalyzer)
}

Describe 'PSScriptAnalyzer' -Skip:$missing {
    It 'finds nothing' {
        $settings = Join-Path $PSScriptRoot '../PSScriptAnalyzerSettings.psd1'
        $found = Invoke-ScriptAnalyzer -Path (Join-Path $PSScriptRoot '../Hotset') -Recurse -Settings $settings
        $found | ForEach-Object { "$($_.ScriptName):$($_.Line) $($_.RuleName) $($_.Message)" } | Should -BeNullOrEmpty
    }
}
