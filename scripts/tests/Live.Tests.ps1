# Against a served API: set URI and TOKEN. What changes something is asked with -WhatIf only.
BeforeDiscovery {
    $script:nowhere = -not ($env:URI -and $env:TOKEN)
}

Describe 'A served API' -Skip:$nowhere {
    BeforeAll {
        Import-Module (Join-Path $PSScriptRoot '../Hotset/Hotset.psd1') -Force
        $secret = New-Object System.Security.SecureString
        $env:TOKEN.ToCharArray() | ForEach-Object { $secret.AppendChar($_) }
        $connection = Connect-Hotset $env:URI -Token $secret
    }

    It 'is connected to' {
        $connection.Uri | Should -Be $env:URI.TrimEnd('/')
    }

    It 'lists what there is' {
        { Get-HotsetTier -ErrorAction Stop } | Should -Not -Throw
        { Get-HotsetJob -Limit 5 -ErrorAction Stop } | Should -Not -Throw
        { Get-HotsetRun -Limit 5 -ErrorAction Stop } | Should -Not -Throw
        @(Get-HotsetDiskModel).Count | Should -BeGreaterThan 0
    }

    It 'refuses a wrong token' {
        $wrong = New-Object System.Security.SecureString
        'wrong'.ToCharArray() | ForEach-Object { $wrong.AppendChar($_) }
        $failure = $null
        try { $null = Connect-Hotset $env:URI -Token $wrong } catch { $failure = $_ }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.Http401*'
    }

    It 'writes an error for a job that is missing, and goes on' {
        $found = @(Get-HotsetJob nobody -ErrorAction SilentlyContinue -ErrorVariable failed)
        $found.Count | Should -Be 0
        $failed.Count | Should -BeGreaterThan 0
    }
}
