# Unit tests of the module, for Pester 5 and later: no server is asked, what sends is mocked.
#   Invoke-Pester scripts/tests
BeforeAll {
    Import-Module (Join-Path $PSScriptRoot '../Hotset/Hotset.psd1') -Force

    function ConvertTo-Answer {
        param($Value)
        @{ Status = 200; Text = (ConvertTo-Json $Value -Depth 8 -Compress) }
    }

    function Get-Refusal {
        param([int] $Status, [string] $Message, [array] $Remedies = @(), [string] $Field)
        $problem = @{
            type     = 'urn:hotset:problem'
            title    = 'Problem'
            status   = $Status
            detail   = "$Message in full"
            message  = $Message
            field    = $Field
            remedies = $Remedies
        }
        @{ Status = $Status; Text = (ConvertTo-Json $problem -Depth 5) }
    }

    function Get-Plain {
        param($Of)
        (New-Object System.Net.NetworkCredential '', $Of.Token).Password
    }

    function Get-Unreachable {
        $inner = New-Object System.Net.Sockets.SocketException 111
        @{ Failed = New-Object System.InvalidOperationException 'An error occurred, see inner exception.', $inner }
    }

    function Get-JobAnswer {
        param([string] $State = 'running', $Result = $null)
        @{
            id       = 'job-1'
            verb     = 'warmup run'
            values   = @{}
            machine  = 'local'
            started  = '2026-11-21T08:30:00+00:00'
            ended    = $null
            state    = $State
            code     = $null
            progress = '1 of 4 GiB'
            done     = 1
            total    = 4
            unit     = 'bytes'
            eta_s    = 30
            messages = @('note: the disk is busy')
            cause    = ''
            problem  = $null
            result   = $Result
        }
    }

    # What a script block fails with; nothing if it does not.
    function Get-Failure {
        param([scriptblock] $Of)
        try { $null = & $Of } catch { $_ }
    }

    # What is wrong with a call, as far as it can be told without making it.
    function Get-BindingFault {
        param([string] $Of, [string] $Code, $Call)
        $bound = [System.Management.Automation.Language.StaticParameterBinder]::BindCommand($Call, $true)
        foreach ($one in $bound.BindingExceptions.Values) { "$($Of): $Code : $($one.BindingException.Message)" }
        $target = Get-Command $Call.GetCommandName()
        if ($target.ResolvedCommand) { $target = $target.ResolvedCommand }
        $isPiped = $Call.Parent.PipelineElements -and $Call.Parent.PipelineElements.IndexOf($Call) -gt 0
        foreach ($one in $target.Parameters.Values) {
            if ($one.Name -in $bound.BoundParameters.Keys) { continue }
            $places = @($one.Attributes | Where-Object { $_ -is [Parameter] -and $_.ParameterSetName -eq '__AllParameterSets' })
            $needed = @($places | Where-Object { $_.Mandatory })
            $comes = $isPiped -and @($places | Where-Object { $_.ValueFromPipeline -or $_.ValueFromPipelineByPropertyName })
            if ($needed -and -not $comes) { "$($Of): $Code : -$($one.Name) is missing" }
        }
    }

    function Connect-Here {
        [CmdletBinding()]
        param([string[]] $Name = 'db1')
        $secret = New-Object System.Security.SecureString
        'hotset_token'.ToCharArray() | ForEach-Object { $secret.AppendChar($_) }
        Connect-Hotset $Name -Token $secret
    }
}

AfterAll {
    Remove-Module Hotset
}

Describe 'The module' {
    It 'exports a cmdlet with help for each of its functions' {
        foreach ($command in Get-Command -Module Hotset -CommandType Function) {
            $help = $command.ScriptBlock.Ast.GetHelpContent()
            $help.Synopsis.Trim() | Should -Not -BeNullOrEmpty
            $help.Description | Should -Not -BeNullOrEmpty
        }
    }

    It 'has examples that PowerShell binds' {
        $faults = foreach ($command in Get-Command -Module Hotset -CommandType Function) {
            foreach ($example in $command.ScriptBlock.Ast.GetHelpContent().Examples) {
                # Behind a blank line stands what it is for.
                $code = ($example.Trim() -split '\r?\n\r?\n')[0]
                $wrong = $null
                $tree = [System.Management.Automation.Language.Parser]::ParseInput($code, [ref] $null, [ref] $wrong)
                foreach ($one in $wrong) { "$($command.Name): $one" }
                foreach ($call in $tree.FindAll({ $args[0] -is [System.Management.Automation.Language.CommandAst] }, $true)) {
                    if ($call.GetCommandName() -notlike '*-Hotset*') { continue }
                    Get-BindingFault $command.Name $code $call
                }
            }
        }
        $faults | Should -BeNullOrEmpty
    }

    It 'has verbs that PowerShell approves' {
        $approved = (Get-Verb).Verb
        foreach ($command in Get-Command -Module Hotset -CommandType Function) {
            $command.Verb | Should -BeIn $approved
        }
    }

    It 'keeps the names that cmdlets had before' {
        (Get-Alias Get-HotsetDisk).Definition | Should -Be 'Get-HotsetTier'
        (Get-Alias Set-HotsetSqlMemory).Definition | Should -Be 'Set-HotsetDatabaseMemory'
        (Get-Alias Move-HotsetTempdb).Definition | Should -Be 'Move-HotsetDatabaseFile'
    }
}

Describe 'Connect-Hotset' {
    BeforeEach {
        Disconnect-Hotset
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 1; version = "$((Get-Module Hotset).Version)"; jobs = @() } }
    }

    It 'takes a name for https and the port of the console, and asks for 15 seconds' {
        (Connect-Here db1).Uri | Should -Be 'https://db1:8480'
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 1 -ParameterFilter {
            $TimeoutSeconds -eq 15 -and (Get-Plain $Session) -eq 'hotset_token'
        }
    }

    It 'warns of an API that is newer than the module' {
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 2; jobs = @() } }
        $said = Connect-Here db1 3>&1 | Where-Object { $_ -is [System.Management.Automation.WarningRecord] }
        [string] $said | Should -BeLike 'db1 has a newer API than this module knows*'
    }

    It 'tells of each server that has another version, and asks those that can' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            $lacks = @{ Status = 404; Text = '{"type": "urn:hotset:not-found", "status": 404, "detail": "there is no such thing here"}' }
            if ([string] $Uri -like '*db1*' -or [string] $Uri -like '*db2*tier*') { return $lacks }
            ConvertTo-Answer @{ schema_version = 1; version = $(if ([string] $Uri -like '*db2*') { '0.0.9' } else { "$((Get-Module Hotset).Version)" }); disks = @(@{ disk = 'shop' }) }
        }
        $all = @(Connect-Here 'db1', 'db2', 'db3' -WarningVariable told 3> $null)
        @($told).Count | Should -Be 2
        [string] $told[0] | Should -BeLike 'db1 has an older hotset,*https://db1:8480/powershell/Hotset.zip*'
        [string] $told[1] | Should -BeLike 'db2 has hotset 0.0.9,*'
        $disks = @(Get-HotsetTier -Connection $all -ErrorAction SilentlyContinue -ErrorVariable failed)
        $disks.Server | Should -Be 'db3'
        @($failed).FullyQualifiedErrorId | Should -BeLike 'Hotset.NotServed*'
        @($failed).Count | Should -Be 2
    }

    It 'sends no token over the network in plain' {
        $failure = Get-Failure { Connect-Here http://db1:8480 }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.Unencrypted*'
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 0
    }

    It 'speaks plain http to this computer' {
        (Connect-Here localhost).Uri | Should -Be 'http://localhost:8480'
    }

    It 'lets no proxy read the token' {
        InModuleScope Hotset { (Get-HotsetHandler @{ Uri = 'http://localhost:8480'; Proxy = 'http://p:3128' }).UseProxy } | Should -BeFalse
        InModuleScope Hotset { (Get-HotsetHandler @{ Uri = 'https://db1:8480' }).UseProxy } | Should -BeFalse
        InModuleScope Hotset { (Get-HotsetHandler @{ Uri = 'https://db1:8480'; Proxy = 'http://p:3128' }).UseProxy } | Should -BeTrue
    }

    It 'refuses what is no address of a proxy' {
        $secret = ConvertTo-SecureString 'mine' -AsPlainText -Force
        foreach ($proxy in 'nonsense', 'ftp://p:21', 'http://', 'http://p q', 'http://<p>') {
            (Get-Failure { Connect-Hotset db1 -Token $secret -Proxy $proxy }).FullyQualifiedErrorId | Should -BeLike 'Hotset.BadProxy*'
        }
        foreach ($proxy in $null, '') {
            (Get-Failure { Connect-Hotset db1 -Token $secret -Proxy $proxy }).FullyQualifiedErrorId | Should -BeLike 'ParameterArgumentValidationError*'
        }
    }

    It 'takes no token of the environment in place of an empty one' {
        $before = $env:HOTSET_TOKEN
        try {
            $env:HOTSET_TOKEN = 'from_environment'
            { Connect-Hotset db1 -Credential ([pscredential]::Empty) } | Should -Throw -ErrorId 'Hotset.NoToken*'
            { Connect-Hotset db1 -Token ([securestring]::new()) } | Should -Throw -ErrorId 'Hotset.NoToken*'
        } finally {
            $env:HOTSET_TOKEN = $before
        }
    }

    It 'reads the token from a file' {
        $file = Join-Path $TestDrive 'token'
        Set-Content -LiteralPath $file -Value 'from_file'
        $null = Connect-Hotset db1 -TokenPath $file
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 1 -ParameterFilter {
            (Get-Plain $Session) -eq 'from_file'
        }
    }

    It 'takes address and file from the environment' {
        $file = Join-Path $TestDrive 'token'
        Set-Content -LiteralPath $file -Value 'from_file'
        $before = $env:HOTSET_URI, $env:HOTSET_TOKEN_FILE
        try {
            $env:HOTSET_URI = 'https://db7:8480'
            $env:HOTSET_TOKEN_FILE = $file
            (Connect-Hotset).Server | Should -Be 'db7'
        } finally {
            $env:HOTSET_URI, $env:HOTSET_TOKEN_FILE = $before
        }
    }

    It 'says that another program is there when it answers with a page' {
        Mock -ModuleName Hotset Send-HotsetRequest { @{ Status = 200; Text = '<html>It works!</html>' } }
        $failure = Get-Failure { Connect-Here }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotHotset*'
        Get-HotsetConnection | Should -BeNullOrEmpty
    }

    It 'says that another program is there when it redirects' {
        Mock -ModuleName Hotset Send-HotsetRequest { @{ Status = 302; Text = '' } }
        $failure = Get-Failure { Connect-Here }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotHotset*'
    }

    It 'names the two ways out of a certificate that is not trusted' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            $cause = New-Object System.Security.Authentication.AuthenticationException 'the chain ends in an unknown root'
            @{ Failed = New-Object System.InvalidOperationException 'see inner exception', $cause }
        }
        $failure = Get-Failure { Connect-Here }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.Untrusted*'
        $failure.Exception.Message | Should -BeLike '*unknown root*trusted roots*-SkipCertificateCheck*'
    }

    It 'says the innermost cause when nobody answers' {
        Mock -ModuleName Hotset Send-HotsetRequest { Get-Unreachable }
        $failure = Get-Failure { Connect-Here }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotReached*'
        $failure.Exception.Message | Should -Not -BeLike '*see inner exception*'
    }

    It 'keeps a token of its own, which the caller may dispose of' {
        $secret = New-Object System.Security.SecureString
        'mine'.ToCharArray() | ForEach-Object { $secret.AppendChar($_) }
        $null = Connect-Hotset db1 -Token $secret
        $secret.Dispose()
        $null = Get-HotsetJob
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 2 -Exactly -ParameterFilter {
            (Get-Plain $Session) -eq 'mine'
        }
    }

    It 'keeps the token out of what it returns' {
        $said = Connect-Here @('db1', 'db2') | Format-List -Property * | Out-String
        $said | Should -Not -BeLike '*hotset_token*'
    }
}

Describe 'Several servers' {
    BeforeEach {
        Disconnect-Hotset
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 1; version = "$((Get-Module Hotset).Version)"; jobs = @() } }
        $all = Connect-Here @('db1', 'db2', 'db3')
        Mock -ModuleName Hotset Send-HotsetRequest {
            if ([string] $Uri -like '*db2*') { return Get-Unreachable }
            ConvertTo-Answer @{ schema_version = 1; disks = @(@{ disk = 'shop'; hit_ratio = 1 }) }
        }
    }

    It 'shows those that answer, and an error for the one that is gone' {
        $disks = @(Get-HotsetTier -Connection $all -ErrorAction SilentlyContinue -ErrorVariable failed)
        $disks.Server | Should -Be @('db1', 'db3')
        $disks[0].HitRatio | Should -BeOfType [double]
        @($failed | Where-Object FullyQualifiedErrorId -like 'Hotset.NotReached*').Count | Should -BeGreaterThan 0
    }

    It 'uses the latest without -Connection' {
        (Get-HotsetTier).Server | Should -Be 'db3'
        (Get-HotsetConnection | Where-Object Default).Server | Should -Be 'db3'
    }

    It 'takes names, and sends an object back to the server it is from' {
        (Get-HotsetTier -Connection db1).Server | Should -Be 'db1'
        $null = Get-HotsetTier -Connection db1 | Get-HotsetTier
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 3 -Exactly -ParameterFilter {
            [string] $Uri -like 'https://db1:8480/api/v1/tier/status*'
        }
    }

    It 'takes connections by the pipeline' {
        $disks = @(Get-HotsetConnection | Where-Object Server -ne db2 | Get-HotsetTier)
        $disks.Server | Should -Be @('db1', 'db3')
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 0 -ParameterFilter {
            $Body -and $Body -like '*disk*'
        }
    }

    It 'says which server is not connected to' {
        $failure = Get-Failure { Get-HotsetTier -Connection db9 }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotConnected*'
    }

    It 'refuses a connection that is null, and asks no other server' {
        $failure = Get-Failure { Get-HotsetTier -Connection $null }
        $failure.FullyQualifiedErrorId | Should -BeLike 'ParameterArgumentValidationError*'
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 0 -ParameterFilter {
            [string] $Uri -like '*/tier/status*'
        }
    }

    It 'forgets all servers that come by the pipeline' {
        Get-HotsetConnection | Disconnect-Hotset
        Get-HotsetConnection | Should -BeNullOrEmpty
    }

    It 'sends gathered objects back to the one server they are from' {
        $run = [pscustomobject] @{ PSTypeName = 'Hotset.Run'; Run = 'one'; StartedAt = [datetime]::Now; Server = 'db1' }
        $null = $run, $run | Compare-HotsetRun -ErrorAction SilentlyContinue
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 1 -Exactly -ParameterFilter {
            [string] $Uri -like 'https://db1:8480/api/v1/runs/compare*'
        }
    }

    It 'sends no object to another server than it is from, where its name means another thing' {
        $disk = [pscustomobject] @{ PSTypeName = 'Hotset.Disk'; Disk = 'shop'; Server = 'db1' }
        $pin = [pscustomobject] @{ PSTypeName = 'Hotset.Pin'; Target = 'table:a'; Server = 'db1' }
        $run = [pscustomobject] @{ PSTypeName = 'Hotset.Run'; Run = 'one'; Server = 'db1' }
        { $disk | Remove-HotsetTier -Connection db3 -Confirm:$false } | Should -Throw -ErrorId 'Hotset.OtherServer*'
        { Remove-HotsetTier $disk -Connection @('db1', 'db3') -Confirm:$false } | Should -Throw -ErrorId 'Hotset.OtherServer*'
        { $pin | Remove-HotsetPin -Disk shop -Connection db3 -Confirm:$false } | Should -Throw -ErrorId 'Hotset.OtherServer*'
        { $run | Export-HotsetReport -Path (Join-Path $TestDrive 'x.html') -Connection db3 } | Should -Throw -ErrorId 'Hotset.OtherServer*'
        (Get-HotsetTier $disk -Connection db1).Server | Should -Be 'db1'
    }

    It 'refuses gathered objects of two servers' {
        $runs = foreach ($server in 'db1', 'db3') {
            [pscustomobject] @{ PSTypeName = 'Hotset.Run'; Run = 'one'; StartedAt = [datetime]::Now; Server = $server }
        }
        $failure = Get-Failure { $runs | Compare-HotsetRun }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.SeveralServers*'
    }

    It 'sends a disk back to the machine it is on' {
        $disks = @(Get-HotsetTier -Connection db1 -Machine ssh://root@db2)
        $disks[0].Machine | Should -Be 'ssh://root@db2'
        $null = $disks | Get-HotsetTier
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 2 -Exactly -ParameterFilter {
            $Body -and $Body -like '*ssh://root@db2*'
        }
    }

    It 'forgets a server' {
        Disconnect-Hotset db2
        (Get-HotsetConnection).Server | Should -Be @('db1', 'db3')
    }
}

Describe 'Errors' {
    BeforeEach {
        Disconnect-Hotset
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 1; version = "$((Get-Module Hotset).Version)"; jobs = @() } }
        $null = Connect-Here
    }

    It 'goes on after a missing item' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            if ([string] $Uri -like '*/nobody') { return Get-Refusal 404 'there is no job nobody' }
            ConvertTo-Answer (Get-JobAnswer)
        }
        $found = @(Get-HotsetJob 'nobody', 'job-1' -ErrorAction SilentlyContinue)
        $found.Id | Should -Be 'job-1'
    }

    It 'ends the call where a server of another version lacks the operation' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            $problem = @{ type = 'urn:hotset:not-found'; title = 'Not found'; status = 404; detail = '/api/v1/tier/status: there is no such thing here' }
            @{ Status = 404; Text = (ConvertTo-Json $problem) }
        }
        { Get-HotsetTier shop -ErrorAction Continue } | Should -Throw -ErrorId 'Hotset.NotServed*'
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 1 -Exactly -ParameterFilter { [string] $Uri -like '*/tier/status' }
    }

    It 'ends the call when what was given is refused' {
        Mock -ModuleName Hotset Send-HotsetRequest { Get-Refusal 422 'it is refused' -Field 'since' }
        $failure = Get-Failure { Get-HotsetHitRatio -Since never }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.Http422*'
        $failure.Exception.Message | Should -BeLike '-Since: it is refused'
    }

    It 'names the cmdlet that helps' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            Get-Refusal 404 'there is no run x' @(@{ purpose = 'see all runs'; operation = 'runs list'; parameters = @{} })
        }
        $failure = Get-Failure { Get-HotsetRun x -ErrorAction Stop }
        $failure.Exception.Message | Should -BeLike 'there is no run x; to see all runs: Get-HotsetRun'
    }

    It 'tells causes apart by the same ids, whether a request or a job met them' {
        $causes = @{
            'log-in'           = 'LogIn', 'AuthenticationError'
            'unknown-database' = 'UnknownDatabase', 'ObjectNotFound'
            'not-loaded'       = 'NotLoaded', 'ResourceUnavailable'
            'not-installed'    = 'NotInstalled', 'NotInstalled'
            'unknown-disk'     = 'UnknownDisk', 'ObjectNotFound'
        }
        foreach ($cause in $causes.Keys) {
            $script:problem = @{ type = "urn:hotset:$cause"; title = 'Problem'; status = 424; detail = 'no'; message = 'no'; remedies = @() }
            Mock -ModuleName Hotset Send-HotsetRequest {
                if ([string] $Uri -notlike '*/jobs/*') { return @{ Status = 424; Text = (ConvertTo-Json $script:problem) } }
                $job = Get-JobAnswer 'failed'
                $job.problem = $script:problem
                ConvertTo-Answer $job
            }
            $id, $category = $causes[$cause]
            foreach ($failing in { Get-HotsetTier shop -ErrorAction Stop }, { Wait-HotsetJob job-1 -ErrorAction Stop -WarningAction Ignore }) {
                $failure = Get-Failure $failing
                $failure.FullyQualifiedErrorId | Should -BeLike "Hotset.$id,*"
                $failure.CategoryInfo.Category | Should -Be $category
            }
        }
    }

    It 'refuses a password in an address before anything is sent' {
        Mock -ModuleName Hotset Send-HotsetRequest { throw 'it was sent' }
        foreach ($dsn in 'sqlserver://sa:secret@db1/shop', 'sqlserver://db1/shop?password=secret', 'host=db1 password=secret') {
            $failure = Get-Failure { Get-HotsetDatabase $dsn }
            $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.PasswordInDsn*'
        }
    }
}

Describe 'Requests' {
    BeforeEach {
        Disconnect-Hotset
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 1; version = "$((Get-Module Hotset).Version)"; jobs = @() } }
        $null = Connect-Here
        $script:sent = $null
        Mock -ModuleName Hotset Send-HotsetRequest {
            $script:sent = @{ Uri = [string] $Uri; Method = [string] $Method; Body = $null }
            if ($Body) { $script:sent.Body = ConvertFrom-Json $Body }
            ConvertTo-Answer (Get-JobAnswer)
        }
    }

    It 'makes a target of a database of dbatools, and the address of its instance' {
        $database = [pscustomobject] @{ SqlInstance = 'db1'; Name = 'shop' }
        $null = $database | Start-HotsetWarmup
        $sent.Uri | Should -BeLike '*/api/v1/warmup/run'
        $sent.Body.targets | Should -Be @('database:shop')
        $sent.Body.dsn | Should -Be 'sqlserver://db1/shop'
        $sent.Body.engine | Should -Be 'sqlserver'
    }

    It 'trusts a certificate that the connection of dbatools trusts' {
        $server = [pscustomobject] @{ ConnectionContext = [pscustomobject] @{ TrustServerCertificate = $true } }
        $null = [pscustomobject] @{ SqlInstance = 'db1'; Name = 'shop'; Parent = $server } | Start-HotsetWarmup
        $sent.Body.dsn | Should -Be 'sqlserver://db1/shop?trust=yes'
    }

    It 'refuses databases of two instances' {
        $databases = foreach ($instance in 'db1', 'db2') {
            [pscustomobject] @{ SqlInstance = $instance; Name = 'shop' }
        }
        $failure = Get-Failure { $databases | Start-HotsetWarmup }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.SeveralInstances*'
        $sent | Should -BeNullOrEmpty
    }

    It 'sends pins back to the machine they are on, and refuses those of two' {
        $here = [pscustomobject] @{ PSTypeName = 'Hotset.Pin'; Target = 'table:a'; Server = 'db1' }
        $there = [pscustomobject] @{ PSTypeName = 'Hotset.Pin'; Target = 'table:b'; Server = 'db1'; Machine = 'ssh://root@db2' }
        $null = $there | Remove-HotsetPin -AsJob -Confirm:$false
        $sent.Body.machine | Should -Be 'ssh://root@db2'
        $failure = Get-Failure { $here, $there | Remove-HotsetPin -AsJob -Confirm:$false }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.SeveralMachines*'
    }

    It 'asks once, for all disks, where no disk is named' {
        $null = Get-HotsetTier
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 1 -Exactly -ParameterFilter {
            [string] $Uri -like '*/tier/status'
        }
    }

    It 'sends user and password apart, whatever letters they have' {
        $secret = New-Object System.Security.SecureString
        $password = -join [char[]] (0x71, 0x27, 0x23, 0x22, 0xE4)
        $password.ToCharArray() | ForEach-Object { $secret.AppendChar($_) }
        $login = New-Object pscredential 'sa', $secret
        $null = Start-HotsetWarmup heat -Dsn sqlserver://db1/shop -Credential $login
        $sent.Body.dsn | Should -Be 'sqlserver://sa@db1/shop'
        $sent.Body.password | Should -BeExactly $password
        $sent.Uri | Should -BeExactly 'https://db1:8480/api/v1/warmup/run'
    }

    It 'gathers a pipeline into one request' {
        $null = 'table:a', 'table:b' | Add-HotsetPin -AsJob
        $sent.Body.targets | Should -Be @('table:a', 'table:b')
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 2 -Exactly
    }

    It 'starts nothing with -WhatIf' {
        $null = Sync-HotsetTier shop -WhatIf
        $sent | Should -BeNullOrEmpty
    }

    It 'names the machine in its question' {
        $what = InModuleScope Hotset { Get-HotsetSubject 'db1' 'shop' 'ssh://root@db2' }
        $what | Should -Be 'shop on ssh://root@db2, by db1'
        InModuleScope Hotset { Get-HotsetSubject 'db1' 'shop' } | Should -Be 'shop on db1'
    }

    It 'has the server tell what it would do with -WhatIf where it can' {
        $null = Set-HotsetDatabaseMemory sqlserver://sa@db1/master -WhatIf -AsJob
        $sent.Body.dry_run | Should -BeTrue
        $sent.Body.yes | Should -BeFalse
    }

    It 'takes a run by the pipeline' {
        $null = 'last' | Get-HotsetRun
        $sent.Uri | Should -BeLike '*/api/v1/runs/last'
    }

    It 'measures newer runs of a pipeline against the oldest' {
        $runs = foreach ($day in 3, 1, 2) {
            [pscustomobject] @{ Run = "run-$day"; StartedAt = [datetime] "2026-11-0$day" }
        }
        $null = $runs | Compare-HotsetRun
        $sent.Uri | Should -BeLike '*run=run-1&run=run-2&run=run-3*'
    }
}

Describe 'What arguments become' {
    BeforeEach {
        Disconnect-Hotset
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 1; version = "$((Get-Module Hotset).Version)" } }
        $null = Connect-Here
        $script:sent = $null
        Mock -ModuleName Hotset Send-HotsetRequest {
            if ($Body) { $script:sent = ConvertFrom-Json $Body }
            if ([string] $Uri -like '*/hit-ratio') { return ConvertTo-Answer @{ by = 'total'; total = @{ reads = 1 } } }
            ConvertTo-Answer (Get-JobAnswer)
        }
    }

    It 'counts sizes as PowerShell does, numbers and texts alike' {
        foreach ($size in (256MB), '256MB', '256MiB', '262144 KB') {
            $null = Resize-HotsetTier shop -Cache $size -AsJob -Confirm:$false
            $script:sent.cache | Should -BeIn '268435456', '256MiB', '262144 KiB'
        }
        $null = Resize-HotsetTier shop -Cache 256MB -AsJob -Confirm:$false
        $script:sent.cache | Should -Be '268435456'
        $null = Start-HotsetWarmup heat -Disk shop -Rate 50MB/s
        $script:sent.rate | Should -Be '50MiB/s'
    }

    It 'takes times as PowerShell says them' {
        $at = [datetimeoffset]::Parse('2026-11-21T08:00:00+00:00')
        foreach ($time in $at, $at.LocalDateTime) {
            $null = Get-HotsetHitRatio shop -Since $time
            ([datetimeoffset] $script:sent.since).UtcDateTime | Should -Be $at.UtcDateTime
        }
        $null = Get-HotsetHitRatio shop -Since (New-TimeSpan -Hours 8)
        $script:sent.since | Should -Be '28800s'
    }

    It 'leaves out no size and no time because it is none' {
        foreach ($size in ([double]::NaN), 1e40, (Get-Date), (Get-Process -Id $PID)) {
            { Resize-HotsetTier shop -Cache $size -AsJob -Confirm:$false } | Should -Throw -ErrorId 'Hotset.NotOfThisKind*'
        }
        foreach ($time in 5, (Get-Process -Id $PID)) {
            { Get-HotsetHitRatio shop -Since $time } | Should -Throw -ErrorId 'Hotset.NotOfThisKind*'
        }
        $script:sent | Should -BeNullOrEmpty
    }

    It 'sends the spelling of the set' {
        $null = Set-HotsetTier shop -Mode WriteBack -AsJob -Confirm:$false
        $script:sent.mode | Should -BeExactly 'writeback'
    }

    It 'takes instances and databases of dbatools wherever a DSN goes' {
        $database = [pscustomobject] @{ SqlInstance = 'db1'; Name = 'shop' }
        $null = $database | Invoke-HotsetTpcc -AsJob -Confirm:$false
        $script:sent.dsn | Should -Be 'sqlserver://db1/shop'
        $null = Get-HotsetDatabase -SqlInstance 'db1,1444'
        $script:sent.dsn | Should -Be 'sqlserver://db1:1444/'
        { Get-HotsetDatabase 'db1\prod' } | Should -Throw -ErrorId 'Hotset.BadDsn*'
    }

    It 'returns what a failing check found, and then one error' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            $job = Get-JobAnswer 'failed' @{ conditions = @(@{ number = 1; title = 'a sum'; holds = $false; violations = 3 }) }
            $job.verb = 'tpcc check'
            ConvertTo-Answer $job
        }
        $found = @(Wait-HotsetJob job-1 -ErrorAction SilentlyContinue -ErrorVariable failed -WarningAction Ignore)
        $found.Holds | Should -Be $false
        @($failed).Count | Should -Be 1
    }

    It 'warns when less is cached after a warm-up than was planned, whatever was cached before' {
        foreach ($share in 0, 0.5, 0.998, 1) {
            Mock -ModuleName Hotset Send-HotsetRequest {
                ConvertTo-Answer (Get-JobAnswer 'done' @{ bytes = 0; planned_bytes = 79MB; left_out_bytes = 0; cached_share = $share })
            }
            $said = @(Wait-HotsetJob job-1 3>&1 | Where-Object { $_ -is [System.Management.Automation.WarningRecord] })
            $wanted = if ($share -lt 0.9) { "*79.0 MiB were planned, $((79 * $share).ToString('0.0', [cultureinfo]::InvariantCulture)) MiB are cached*" } else { 'the disk is busy' }
            "$said" | Should -BeLike $wanted
        }
    }

    It 'says in a question what is lost' {
        $lines = foreach ($given in @{}, @{ Replace = $true }) {
            $transcript = Join-Path $TestDrive "question-$($given.Count)"
            $null = Start-Transcript -LiteralPath $transcript
            $null = New-HotsetTpccDatabase sqlserver://sa@db1/tpcc @given -WhatIf
            $null = Stop-Transcript
            (Get-Content -LiteralPath $transcript) -join ' '
        }
        $lines[0] | Should -Not -BeLike '*dropped with all their rows*'
        $lines[1] | Should -BeLike '*dropped with all their rows*sqlserver://sa@db1/tpcc on db1*'
    }

    It 'overwrites no report without -Force' {
        $file = Join-Path $TestDrive 'there.html'
        Set-Content -LiteralPath $file -Value 'mine'
        $line = [pscustomobject] @{ PSTypeName = 'Hotset.HitRatio'; Server = 'db1'; Disk = 'shop' }
        { $line | Export-HotsetReport -Path $file } | Should -Throw -ErrorId 'Hotset.FileExists*'
        Get-Content -LiteralPath $file | Should -Be 'mine'
        $line | Export-HotsetReport -Path $file -Force
        Get-Content -LiteralPath $file -Raw | Should -BeLike '*<table>*'
    }

    It 'writes no report into the place of a folder' {
        $line = [pscustomobject] @{ PSTypeName = 'Hotset.HitRatio'; Server = 'db1'; Disk = 'shop' }
        foreach ($force in $false, $true) {
            $failure = Get-Failure { $line | Export-HotsetReport -Path $TestDrive -Force:$force }
            $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotWritten*'
            $failure.Exception.Message | Should -BeLike '*this is a folder*'
        }
    }

    It 'asks again when the server is busy' {
        $script:times = 0
        Mock -ModuleName Hotset Start-Sleep
        Mock -ModuleName Hotset Send-HotsetRequest {
            $script:times++
            if ($script:times -lt 3) { return Get-Refusal 429 'too many' }
            ConvertTo-Answer @{ schema_version = 1; jobs = @() }
        }
        $null = Get-HotsetJob
        $script:times | Should -Be 3
    }

    It 'starts no second job after a 503' {
        $script:times = 0
        Mock -ModuleName Hotset Send-HotsetRequest {
            $script:times++
            Get-Refusal 503 'it ends'
        }
        { Start-HotsetWarmup heat -Disk shop } | Should -Throw -ErrorId 'Hotset.Http503*'
        $script:times | Should -Be 1
    }
}

Describe 'Waiting' {
    BeforeEach {
        Disconnect-Hotset
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 1; version = "$((Get-Module Hotset).Version)"; jobs = @() } }
        $null = Connect-Here
        Mock -ModuleName Hotset Start-Sleep
        $script:looks = 0
    }

    It 'shows percent and time left, and returns the result' {
        Mock -ModuleName Hotset Write-Progress
        Mock -ModuleName Hotset Send-HotsetRequest {
            $script:looks++
            if ($script:looks -lt 2) { return ConvertTo-Answer (Get-JobAnswer) }
            ConvertTo-Answer (Get-JobAnswer 'done' @{ bytes = 4096; mb_per_s = 12 })
        }
        $result = Wait-HotsetJob job-1 -WarningAction SilentlyContinue
        $result.PSObject.TypeNames[0] | Should -Be 'Hotset.WarmupRun'
        $result.Bytes | Should -Be 4096
        Should -Invoke -ModuleName Hotset Write-Progress -ParameterFilter {
            $PercentComplete -eq 25 -and $SecondsRemaining -eq 30
        }
    }

    It 'asks a server again that does not answer for a while' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            $script:looks++
            if ($script:looks -lt 3) { return Get-Unreachable }
            ConvertTo-Answer (Get-JobAnswer 'done' @{ bytes = 1 })
        }
        (Wait-HotsetJob job-1 -WarningAction SilentlyContinue).Bytes | Should -Be 1
    }

    It 'gives up when told not to try again' {
        Mock -ModuleName Hotset Send-HotsetRequest { Get-Unreachable }
        $failure = Get-Failure { Wait-HotsetJob job-1 -RetrySeconds 0 }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.NotReached*'
    }

    It 'stops at once when the token was revoked, and names the job that it left' {
        Mock -ModuleName Hotset Send-HotsetRequest { Get-Refusal 401 'the token is not known here' }
        Mock -ModuleName Hotset Write-Warning
        $failure = Get-Failure { Wait-HotsetJob job-1 }
        Should -Invoke -ModuleName Hotset Write-Warning -Times 1 -Exactly -ParameterFilter {
            $Message -like 'Job job-1 is no longer waited for*'
        }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.Http401*'
    }

    It 'says why a job failed' {
        Mock -ModuleName Hotset Send-HotsetRequest {
            $job = Get-JobAnswer 'failed'
            $job.cause = 'the disk is gone'
            ConvertTo-Answer $job
        }
        $failure = Get-Failure { Wait-HotsetJob job-1 -WarningAction SilentlyContinue }
        $failure.FullyQualifiedErrorId | Should -BeLike 'Hotset.JobFailed*'
        $failure.Exception.Message | Should -BeLike '*failed: the disk is gone'
    }
}

Describe 'Reports of hit ratios' {
    It 'are pages that say their letters, Markdown, or JSON, by the end of -Path' {
        $line = [pscustomobject] @{ PSTypeName = 'Hotset.HitRatio'; Server = 'db1'; Disk = 'shop'; HitRatio = 0.5; Notes = @('a <note>') }
        $line | Export-HotsetReport -Path (Join-Path $TestDrive 'hits.html')
        $page = Get-Content -LiteralPath (Join-Path $TestDrive 'hits.html') -Raw
        $page | Should -BeLike '*<meta charset="utf-8">*'
        $page | Should -BeLike '*a &lt;note&gt;*'
        ($line | Export-HotsetReport -Path (Join-Path $TestDrive 'hits.md') -PassThru).Name | Should -Be 'hits.md'
        Get-Content -LiteralPath (Join-Path $TestDrive 'hits.md') -TotalCount 1 | Should -BeLike '| Server | Disk |*'
        $line | Export-HotsetReport -Path (Join-Path $TestDrive 'hits.json')
        (Get-Content -LiteralPath (Join-Path $TestDrive 'hits.json') -Raw | ConvertFrom-Json).Disk | Should -Be 'shop'
    }

    It 'are not written with -WhatIf' {
        $line = [pscustomobject] @{ PSTypeName = 'Hotset.HitRatio'; Server = 'db1'; Disk = 'shop' }
        $line | Export-HotsetReport -Path (Join-Path $TestDrive 'none.html') -WhatIf
        Join-Path $TestDrive 'none.html' | Should -Not -Exist
    }
}

Describe 'Completion of targets' {
    BeforeAll {
        # What Tab offers behind the last word of a line.
        function Get-TabOffer {
            param([string] $Line)
            @((TabExpansion2 $Line $Line.Length).CompletionMatches | ForEach-Object { $_.CompletionText })
        }
    }

    BeforeEach {
        Disconnect-Hotset
        $script:asked = 0
        Mock -ModuleName Hotset Send-HotsetRequest { ConvertTo-Answer @{ schema_version = 1; version = "$((Get-Module Hotset).Version)"; jobs = @() } }
        Mock -ModuleName Hotset Send-HotsetRequest -ParameterFilter { "$Uri" -like '*/warmup/targets' } {
            $script:asked++
            ConvertTo-Answer @{
                schema_version = 1
                targets        = @(
                    @{ target = 'database:shop'; bytes = $null }
                    @{ target = 'table:public.orders'; bytes = 1048576 }
                    @{ target = 'table:"Odd"."Its table"'; bytes = 8192 }
                )
            }
        }
    }

    It 'offers what the database server of -Dsn has, and asks it once' {
        $null = Connect-Here db11
        $line = 'Add-HotsetPin -Dsn postgresql://app@db1/shop -Target '
        Get-TabOffer ($line + 'table:p') | Should -Be @('table:public.orders')
        Get-TabOffer ($line + 'd') | Should -Be @('database:shop')
        Get-TabOffer ($line + 'table:') | Should -Contain "'table:""Odd"".""Its table""'"
        $script:asked | Should -Be 1
        Should -Invoke -ModuleName Hotset Send-HotsetRequest -Times 1 -ParameterFilter {
            "$Uri" -like '*/warmup/targets' -and $TimeoutSeconds -eq 1 -and
            $Body -like '*app@db1/shop*'
        }
    }

    It 'offers it for shares, and for what comes first and what is left out' {
        $null = Connect-Here db12
        $dsn = '-Dsn postgresql://app@db1/shop'
        Get-TabOffer "Add-HotsetShare $dsn -Target database:" | Should -Be @('database:shop')
        Get-TabOffer "Start-HotsetWarmup heat $dsn -Pin table:p" | Should -Be @('table:public.orders')
        Get-TabOffer "Start-HotsetWarmup heat $dsn -Exclude table:p" | Should -Be @('table:public.orders')
    }

    It 'asks no database without -Dsn' {
        $null = Connect-Here db13
        Get-TabOffer 'Add-HotsetPin -Target h' | Should -Be @('heat')
        $script:asked | Should -Be 0
    }

    It 'is silent when nobody answers, and when nobody is connected' {
        $null = Connect-Here db14
        Mock -ModuleName Hotset Send-HotsetRequest { Get-Unreachable } -ParameterFilter {
            "$Uri" -like '*/warmup/targets'
        }
        $line = 'Add-HotsetPin -Dsn postgresql://app@db1/shop -Target '
        Get-TabOffer ($line + 'table:p') | Should -BeNullOrEmpty
        Get-TabOffer ($line + 'hea') | Should -Be @('heat')
        Disconnect-Hotset
        Get-TabOffer ($line + 'database:') | Should -BeNullOrEmpty
    }
}
