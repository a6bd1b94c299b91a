# Against a served API: set URI and TOKEN, and for what fails UNTRUSTED_URI, of whose certificate nobody
# knows, SILENT_URI, which takes connections and never answers, and AMISS_URI, which breaks off its
# answers as the job or the disk is called, and has 10,000 jobs. What changes something is asked with
# -WhatIf only, or with a name that is refused.
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

    It 'takes nothing empty for a server, a disk, a flash device or a machine, in any cmdlet' {
        $unset = $null
        $tried = 0
        foreach ($command in Get-Command -Module Hotset -CommandType Function) {
            foreach ($name in 'Connection', 'Disk', 'FlashName', 'Machine') {
                if (-not $command.Parameters[$name]) { continue }
                foreach ($empty in $unset, '', @()) {
                    # What else it needs: binding ends at the first that is refused.
                    $given = @{ $name = $empty; ErrorAction = 'Stop' }
                    foreach ($other in $command.Parameters.Values) {
                        $needed = @($other.Attributes | Where-Object { $_ -is [Parameter] -and $_.Mandatory }).Count
                        if (-not $needed -or $other.Name -eq $name) { continue }
                        $allowed = @($other.Attributes | Where-Object { $_ -is [ValidateSet] })
                        $given[$other.Name] = if ($allowed) { $allowed[0].ValidValues[0] } else { '1' }
                    }
                    if ($command.Parameters['WhatIf']) { $given.WhatIf = $true }
                    $failure = $null
                    try { $null = & $command @given } catch { $failure = $_ }
                    $failure.FullyQualifiedErrorId | Should -BeLike 'Parameter*' -Because "$($command.Name) -$name"
                    $failure.Exception.ParameterName | Should -Be $name -Because $command.Name
                    $tried++
                }
            }
        }
        $tried | Should -BeGreaterThan 100
    }

    It 'needs the name of what it takes down, and none is chosen for an empty pipeline or a connection' {
        foreach ($command in 'Disable-HotsetTier', 'Remove-HotsetTier', 'Remove-HotsetFlash', 'Repair-HotsetTier') {
            $failure = $null
            try { & $command -Confirm:$false } catch { $failure = $_ }
            $failure.FullyQualifiedErrorId | Should -BeLike 'MissingMandatoryParameter*'
            $failure = $null
            try { $null | & $command -Confirm:$false -ErrorAction Stop } catch { $failure = $_ }
            $failure.FullyQualifiedErrorId | Should -BeLike 'ParameterArgumentValidationError*'
            $failure = $null
            try { $connection | & $command -Confirm:$false -ErrorAction Stop } catch { $failure = $_ }
            $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotOfThisKind*'
        }
    }

    It 'leaves neither token nor password in errors, messages and the transcript of what fails' {
        $secret = 'hotset_not-the-one'
        $wrong = New-Object System.Security.SecureString
        $secret.ToCharArray() | ForEach-Object { $wrong.AppendChar($_) }
        $broken = New-Object System.Security.SecureString
        "$secret`ntwo lines".ToCharArray() | ForEach-Object { $broken.AppendChar($_) }
        $password = New-Object System.Security.SecureString
        'a-password'.ToCharArray() | ForEach-Object { $password.AppendChar($_) }
        $login = New-Object pscredential 'app', $password
        $transcript = Join-Path $TestDrive 'transcript'
        $global:Error.Clear()
        $null = Start-Transcript -LiteralPath $transcript
        $said = @(& {
            Get-HotsetJob nobody -Verbose -Debug -ErrorVariable +kept
            $failing = @(
                { Connect-Hotset $env:URI -Token $wrong -Verbose -Debug -ErrorVariable +kept }
                { Connect-Hotset $env:URI -Token $broken -Verbose -Debug -ErrorVariable +kept }
                { Connect-Hotset http://127.0.0.1:1 -Token $wrong -Verbose -Debug -ErrorVariable +kept }
                { Connect-Hotset $env:UNTRUSTED_URI -Token $wrong -Verbose -Debug -ErrorVariable +kept }
                { Get-HotsetDatabase postgresql://127.0.0.1:1/shop -Credential $login -Verbose -ErrorVariable +kept }
                { InModuleScope Hotset -Parameters @{ Secret = $wrong } {
                        param($Secret)
                        $session = ConvertTo-HotsetSession $env:SILENT_URI $Secret $false
                        throw (Invoke-HotsetApi $session Get /api/v1/jobs -TimeoutSeconds 1)
                    } }
            )
            foreach ($one in $failing) { try { & $one } catch { $_.FullyQualifiedErrorId.Split(',')[0] } }
            $kept
        } *>&1)
        $null = Stop-Transcript
        $ids = @($said | Where-Object { $_ -is [string] -and $_ -like 'Hotset.*' })
        $ids | Should -Be @('Hotset.Http401', 'Hotset.NoToken', 'Hotset.NotReached', 'Hotset.OtherName', 'Hotset.Http424', 'Hotset.NotReached')
        $global:Error.Count | Should -BeGreaterThan 6
        $shown = @(
            $said | Out-String -Width 500
            $said | Format-List -Property * -Force | Out-String -Width 500
            $global:Error | Format-List -Property * -Force | Out-String -Width 500
            $global:Error | ForEach-Object { $_.TargetObject, $_.Exception | Format-List -Property * -Force } | Out-String -Width 500
            if ($PSVersionTable.PSEdition -eq 'Core') { $global:Error | Get-Error | Out-String -Width 500 }
            Get-Content -LiteralPath $transcript -Raw
        ) -join "`n"
        $shown | Should -BeLike '*GET http://*'
        foreach ($hidden in $env:TOKEN, $secret, 'a-password', 'Bearer') {
            $shown.Contains($hidden) | Should -BeFalse -Because "it holds $hidden"
        }
    }

    It 'takes the certificate of a server of which that was said, and of no other' {
        $wrong = New-Object System.Security.SecureString
        'wrong'.ToCharArray() | ForEach-Object { $wrong.AppendChar($_) }
        $failure = $null
        try { Connect-Hotset $env:UNTRUSTED_URI -Token $wrong -SkipCertificateCheck } catch { $failure = $_ }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotHotset*'
        try { Connect-Hotset $env:UNTRUSTED_URI -Token $wrong } catch { $failure = $_ }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.OtherName*'
    }

    It 'takes nothing empty for any parameter of any cmdlet' {
        $tried = 0
        foreach ($command in Get-Command -Module Hotset -CommandType Function) {
            foreach ($parameter in $command.Parameters.Values) {
                $isCommon = $parameter.Name -in [System.Management.Automation.Cmdlet]::CommonParameters -or $parameter.Name -in 'WhatIf', 'Confirm'
                if ($isCommon -or $parameter.SwitchParameter -or $parameter.ParameterType -eq [pscredential]) { continue }
                $own = $parameter.Attributes | Where-Object { $_.GetType().Name -in 'ValidateNotNullOrEmptyAttribute', 'ValidateNotNullAttribute', 'ValidateSetAttribute' -or $_.Mandatory }
                # A number cannot be null.
                $isNumber = $parameter.ParameterType.IsValueType -and $parameter.ParameterType.Name -notlike 'Nullable*'
                if ($command.Name -eq 'Connect-Hotset' -and $parameter.Name -eq 'Uri') { continue }
                [bool] $own -or $isNumber | Should -BeTrue -Because "$($command.Name) -$($parameter.Name)"
                $tried++
            }
        }
        $tried | Should -BeGreaterThan 300
    }

    It 'asks nothing for an empty pipeline' {
        $before = @(Get-HotsetJob).Count
        foreach ($command in Get-Command -Module Hotset -CommandType Function) {
            $piped = @($command.Parameters.Values | Where-Object { $_.Attributes | Where-Object { $_.ValueFromPipeline } })
            if (-not $piped -or $command.Name -in 'Connect-Hotset', 'Disconnect-Hotset') { continue }
            $given = @{}
            foreach ($other in $command.Parameters.Values) {
                $needed = @($other.Attributes | Where-Object { $_ -is [Parameter] -and $_.Mandatory }).Count
                if (-not $needed -or $other.Name -eq $piped[0].Name) { continue }
                $allowed = @($other.Attributes | Where-Object { $_ -is [ValidateSet] })
                $given[$other.Name] = if ($allowed) { $allowed[0].ValidValues[0] } else { '1' }
            }
            if ($command.Parameters['Confirm']) { $given.Confirm = $false }
            @(@() | & $command @given).Count | Should -Be 0 -Because $command.Name
        }
        @(Get-HotsetJob).Count | Should -Be $before
    }

    It 'refuses an object that is something else, and takes its own by argument as by pipeline' {
        foreach ($command in 'Get-HotsetTier', 'Get-HotsetRun', 'Get-HotsetJob', 'Wait-HotsetJob', 'Stop-HotsetJob') {
            { Get-Process -Id $PID | & $command -ErrorAction Stop } | Should -Throw -ErrorId 'Hotset.NotOfThisKind*'
        }
        { [pscustomobject] @{ PSTypeName = 'Hotset.Job'; Id = 'x' } | Get-HotsetTier -ErrorAction Stop } |
            Should -Throw -ErrorId 'Hotset.NotOfThisKind*'
        $row = [pscustomobject] @{ Id = 'nobody' }
        { Get-HotsetJob $row -ErrorAction Stop } | Should -Throw -ErrorId 'Hotset.Http404*' -ExceptionType ([InvalidOperationException])
    }

    It 'makes one failure one entry of -ErrorVariable, and none with -ErrorAction Ignore' {
        $failing = @(
            { param($how) Get-HotsetJob nobody @how }
            { param($how) Get-HotsetTier nobody @how }
            { param($how) Wait-HotsetJob nobody @how }
            { param($how) Get-HotsetRun nobody @how }
        )
        foreach ($one in $failing) {
            & $one @{ ErrorAction = 'SilentlyContinue'; ErrorVariable = 'kept'; WarningAction = 'Ignore' }
            @(Get-Variable kept -ValueOnly -ErrorAction Ignore).Count | Should -BeLessOrEqual 1
            $global:Error.Clear()
            & $one @{ ErrorAction = 'Ignore'; WarningAction = 'Ignore' }
            $global:Error.Count | Should -Be 0 -Because "$one"
            $global:Error.Clear()
            & $one @{ ErrorAction = 'SilentlyContinue'; WarningAction = 'Ignore' }
            $global:Error.Count | Should -Be 1 -Because "$one"
        }
    }

    It 'names what changes something: no tier is chosen where none was named' {
        $changing = @(Get-Command -Module Hotset | Where-Object { $_.Noun -in 'HotsetTier', 'HotsetHeat' -and $_.Verb -notin 'Get', 'New' })
        $changing.Count | Should -BeGreaterThan 7
        foreach ($command in $changing) {
            { & $command -Confirm:$false } | Should -Throw -ErrorId 'MissingMandatoryParameter*' -Because $command.Name
        }
    }

    It 'is used from other runspaces by its object' -Skip:($PSVersionTable.PSVersion.Major -lt 7) {
        $module = (Get-Module Hotset).Path
        $found = 1..3 | ForEach-Object -ThrottleLimit 3 -Parallel {
            Import-Module $using:module
            @(Get-HotsetDiskModel -Connection $using:connection).Count
        }
        @($found).Count | Should -Be 3
        $found[0] | Should -BeGreaterThan 0
    }

    It 'tells version and right' {
        $connection.Version | Should -Be (Get-Module Hotset).Version
        $connection.Right | Should -Be 'admin'
        $connection.Default | Should -BeTrue
    }

    It 'trusts the one certificate that -Thumbprint names' {
        $secret = New-Object System.Security.SecureString
        'wrong'.ToCharArray() | ForEach-Object { $secret.AppendChar($_) }
        foreach ($right in $env:UNTRUSTED_SHA256, $env:UNTRUSTED_SHA256.ToLowerInvariant().Replace(':', '')) {
            { Connect-Hotset $env:UNTRUSTED_URI -Token $secret -Thumbprint $right } | Should -Throw -ErrorId 'Hotset.NotHotset*'
        }
        { Connect-Hotset $env:UNTRUSTED_URI -Token $secret -Thumbprint ('00' * 32) } | Should -Throw -ErrorId 'Hotset.Untrusted*'
        { Connect-Hotset $env:UNTRUSTED_URI -Token $secret -Thumbprint abc } | Should -Throw -ErrorId 'Hotset.BadThumbprint*'
    }

    It 'tells a port without TLS, another name and an unknown certificate apart' {
        $secret = New-Object System.Security.SecureString
        'wrong'.ToCharArray() | ForEach-Object { $secret.AppendChar($_) }
        { Connect-Hotset $env:URI.Replace('http:', 'https:') -Token $secret } | Should -Throw -ErrorId 'Hotset.NotEncrypted*'
        { Connect-Hotset $env:UNTRUSTED_URI -Token $secret } | Should -Throw -ErrorId 'Hotset.OtherName*'
        { Connect-Hotset $env:UNTRUSTED_URI.Replace('127.0.0.1', 'localhost') -Token $secret } | Should -Throw -ErrorId 'Hotset.Untrusted*'
    }
    It 'makes one error, which names the server, of an answer that does not come or is broken off' {
        $amiss = Connect-Hotset $env:AMISS_URI -Token $secret
        $ask = { param($id) InModuleScope Hotset -Parameters @{ Session = $amiss; Id = $id } {
                param($Session, $Id)
                throw (Invoke-HotsetApi $Session Get "/api/v1/jobs/$Id" -TimeoutSeconds 2)
            } }
        $how = @{ Connection = $amiss; ErrorAction = 'Stop' }
        $wait = @{ Connection = $amiss; WarningAction = 'Ignore' }
        $failing = @(
            @{ Id = 'NotReached'; Says = 'no whole answer within 2 s'; Call = { & $ask silent } }
            @{ Id = 'NotReached'; Says = 'no whole answer within 2 s'; Call = { & $ask stuck } }
            @{ Id = 'NotReached'; Says = 'broke the connection off'; Call = { Get-HotsetJob cut @how } }
            @{ Id = 'NotHotset'; Says = 'not JSON'; Call = { Get-HotsetJob half @how } }
            @{ Id = 'NotHotset'; Says = 'answered 500'; Call = { Get-HotsetHitRatio failed @how } }
            @{ Id = 'NotReached'; Says = 'broke the connection off'; Call = { Get-HotsetHitRatio cut -Wait @how } }
            @{ Id = 'Timeout'; Says = 'is not known to have ended after 2 s'; Call = { Wait-HotsetJob silent -TimeoutSeconds 2 @wait } }
            @{ Id = 'Timeout'; Says = 'is not known to have ended after 2 s'; Call = { Wait-HotsetJob stuck -TimeoutSeconds 2 @wait } }
            @{ Id = 'NotReached'; Says = 'broke the connection off'; Call = { Wait-HotsetJob cut -RetrySeconds 0 @wait } }
            @{ Id = 'NotHotset'; Says = 'not JSON'; Call = { Wait-HotsetJob half @wait } }
        )
        foreach ($one in $failing) {
            $call = $one.Call
            $global:Error.Clear()
            $watch = [System.Diagnostics.Stopwatch]::StartNew()
            $failure = $null
            try { & $call } catch { $failure = $_ }
            $failure.FullyQualifiedErrorId | Should -BeLike "Hotset.$($one.Id)*" -Because "$call"
            $failure.Exception.Message | Should -BeLike "*$($amiss.Server)*$($one.Says)*"
            $global:Error.Count | Should -Be 1 -Because "$call"
            $watch.Elapsed.TotalSeconds | Should -BeLessThan 10 -Because "$call"
        }
        $null = Connect-Hotset $env:URI -Token $secret
    }

    It 'hands out ten thousand jobs as they come' {
        $amiss = Connect-Hotset $env:AMISS_URI -Token $secret
        $seen = [System.Collections.Generic.List[string]]::new()
        $few = @(Get-HotsetJob -Connection $amiss | ForEach-Object { $seen.Add($_.Id); $_ } | Select-Object -First 5)
        $few.Count | Should -Be 5
        $seen.Count | Should -Be 5
        @(Get-HotsetJob -Connection $amiss).Count | Should -Be 10000
        @(Get-HotsetJob '*-0999?' -Connection $amiss).Count | Should -Be 10
        $null = Connect-Hotset $env:URI -Token $secret
    }
}
