# Against a served API, as Live.Tests.ps1: what takes longer, for `make test-all`.
BeforeDiscovery {
    $script:nowhere = -not ($env:URI -and $env:TOKEN)
    $script:isInvariant = [System.Globalization.CultureInfo]::GetCultures('AllCultures').Count -lt 10
}

Describe 'A served API at night' -Tag Night -Skip:$nowhere {
    BeforeAll {
        $module = Join-Path $PSScriptRoot '../Hotset/Hotset.psd1'
        Import-Module $module -Force
        $secret = ConvertTo-SecureString $env:TOKEN -AsPlainText -Force
        $connection = Connect-Hotset $env:URI -Token $secret
    }

    It 'serves twenty sessions at once' {
        $counts = 1..20 | ForEach-Object -ThrottleLimit 20 -Parallel {
            Import-Module $using:module
            $own = Connect-Hotset $env:URI -Token $using:secret
            $models = @(1..3 | ForEach-Object { @(Get-HotsetDiskModel -Connection $own).Count })
            "$($models -join ' '), $(@(Get-HotsetConnection).Count)"
        }
        @($counts).Count | Should -Be 20
        $count = @(Get-HotsetDiskModel).Count
        @($counts | Select-Object -Unique) | Should -Be "$count $count $count, 1"
    }

    It 'is asked by jobs of PowerShell, with the connection of who started them' {
        $found = Start-Job -ArgumentList $module, $connection {
            param($Module, $Connection)
            Import-Module $Module
            (Get-HotsetDiskModel -Connection $Connection).Count
        } | Receive-Job -Wait -AutoRemoveJob
        $found | Should -Be @(Get-HotsetDiskModel).Count
    }

    It 'is understood in <_>' -Skip:$isInvariant -ForEach 'de-DE', 'tr-TR', 'fa-IR', 'ar-SA' {
        $before = [cultureinfo]::CurrentCulture
        $plain = Get-HotsetDiskModel | ConvertTo-Json -Depth 4
        $job = Start-HotsetWarmup heat -Disk nobodys -Rate (1.5MB) -Confirm:$false
        $job | Wait-HotsetJob -ErrorAction SilentlyContinue -WarningAction Ignore
        try {
            [cultureinfo]::CurrentCulture = $_
            Import-Module $module -Force
            $null = Connect-Hotset $env:URI -Token $secret
            Get-HotsetDiskModel | ConvertTo-Json -Depth 4 | Should -Be $plain
            # A number with a fraction, a size, a time, and what is written in capitals.
            $there = Get-HotsetJob $job.Id
            $there.Started | Should -Be $job.Started
            $again = Start-HotsetWarmup heat -Disk nobodys -Rate (1.5MB) -Confirm:$false
            $again | Wait-HotsetJob -ErrorAction SilentlyContinue -WarningAction Ignore
            (Get-HotsetJob $again.Id).Values.Rate | Should -Be (Get-HotsetJob $job.Id).Values.Rate
            { Set-HotsetTier nobodys -Mode WRITETHROUGH -Confirm:$false -ErrorAction Stop } | Should -Throw -ErrorId 'Hotset.UnknownDisk*'
            { Get-HotsetHitRatio nobodys -Since (Get-Date).AddHours(-8) -ErrorAction Stop } | Should -Throw -ErrorId 'Hotset.UnknownDisk*'
        } finally {
            [cultureinfo]::CurrentCulture = $before
        }
    }
}
