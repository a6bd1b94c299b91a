# Every cmdlet once, against a served API; prints what came of it as JSON. See test_bash_client.py.
param([string] $Module)
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
Import-Module $Module

function Get-Problem {
    param([scriptblock] $Of)
    try { $null = & $Of; 'no error' } catch { $_.FullyQualifiedErrorId.Split(',')[0] }
}

function ConvertTo-Secure {
    param([string] $Text)
    ConvertTo-SecureString $Text -AsPlainText -Force
}

$token = ConvertTo-Secure $env:TOKEN
$login = New-Object pscredential $env:DB_USER, (ConvertTo-Secure $env:DB_PASSWORD)
$problems = @(
    Get-Problem { Get-HotsetJob }
    Get-Problem { Connect-Hotset http://db1:8480 -Token $token }
    Get-Problem { Connect-Hotset $env:URI -Token (ConvertTo-Secure wrong) }
)
$connection = Connect-Hotset $env:URI -Credential (New-Object pscredential 'any', $token)

$tpcc = @{
    Dsn           = $env:DSN
    Credential    = $login
    Warehouses    = 2
    Users         = 2
    RampupSeconds = 0
    NoCheck       = $true
}
$run = Invoke-HotsetTpcc @tpcc -DurationSeconds 1
$job = Invoke-HotsetTpcc @tpcc -DurationSeconds 600 -AsJob
$problems += Get-Problem { $job | Wait-HotsetJob -TimeoutSeconds 1 }
$stopped = $job | Stop-HotsetJob
$problems += Get-Problem { $job | Wait-HotsetJob }
$problems += Get-Problem { Get-HotsetJob nobody }
$problems += Get-Problem { Get-HotsetRun nobody }
$problems += Get-Problem { Compare-HotsetRun 'one', 'two' }
$problems += Get-Problem { Get-HotsetHitRatio -Since never }
$problems += Get-Problem { Invoke-HotsetTpch $env:DSN -Credential $login -Queries 1 }
$problems += Get-Problem { Set-HotsetSqlMemory postgresql://u:p@h/d -WhatIf }
$problems += Get-Problem { Move-HotsetTempdb $env:DSN -Credential $login -Folder /nowhere -WhatIf }
$wrong = New-Object pscredential $env:DB_USER, (ConvertTo-Secure wrong)
$missing = $env:DSN.Substring(0, $env:DSN.LastIndexOf('/')) + '/nobodys'
$problems += Get-Problem { Get-HotsetTier nobodys }
$problems += Get-Problem { Sync-HotsetTier nobodys }
$problems += Get-Problem { Get-HotsetDatabase $env:DSN -Credential $wrong }
$problems += Get-Problem { Invoke-HotsetTpch $env:DSN -Credential $wrong }
$problems += Get-Problem { Get-HotsetDatabase $missing -Credential $login }
$problems += Get-Problem { Invoke-HotsetTpch $missing -Credential $login }
$problems += Get-Problem { Set-HotsetDatabaseMemory $env:DSN -Credential $login -Size 900TiB -Confirm:$false }
$refused = $Error[0].Exception.Message

$postgres = @{ Dsn = $env:DSN; Engine = 'postgres'; Credential = $login; WhatIf = $true }
ConvertTo-Json -Depth 3 @{
    problems = $problems
    refused  = $refused
    uri      = $connection.Uri
    runs     = @(Get-HotsetRun).Count
    disks    = @(Get-HotsetDisk).Count
    nothing  = $null -eq (Start-HotsetWarmup heat -WhatIf)
    nopm     = $run.Nopm
    kinds    = @($run.PSObject.TypeNames[0], $run.Nopm.GetType().Name, $run.OpenedAt.GetType().Name)
    states   = @($job.State, (Get-HotsetJob $job.Id).State)
    stopped  = $stopped.Id -eq $job.Id
    memory   = @(Set-HotsetSqlMemory @postgres -Size 64MiB)
    table    = $job | Format-Table | Out-String
    help     = (Get-Help Invoke-HotsetTpcc).Synopsis
}
