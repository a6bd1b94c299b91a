# Runs the examples of the module's own help against a served API, with the disk and the database that
# are there in place of those that they name. Prints, as JSON, what came of each: its error, or none.
# Of -Which those that look and the three acts, or the others.
param([string] $Module, [ValidateSet('reading', 'others')] [string] $Which, [string] $Folder)
$ErrorActionPreference = 'Continue'
$ProgressPreference = 'SilentlyContinue'
Import-Module $Module

# Bound only: they need SQL Server and dbatools, Windows or a desktop, a device that nothing lies on, or hours.
$boundOnly = @{
    'Get-DbaDatabase'        = 'SQL Server, and dbatools'
    'Invoke-Item'            = 'a desktop'
    'Show-HotsetReport'      = 'a desktop'
    'Clear-HotsetDatabaseCache' = 'PostgreSQL 17, or SQL Server'
    'Get-Secret'             = 'the module SecretManagement, and a vault'
    'Read-Host'              = 'somebody who types'
    'New-HotsetTier'         = 'two devices that nothing lies on'
    'Import-HotsetFlash'     = 'the flash of another server'
    'Remove-HotsetFlash'     = 'a flash device without disks'
    'Disable-HotsetTier'     = 'a disk that nobody has mounted'
    'Remove-HotsetTier'      = 'a disk that nobody has mounted'
    'Enable-HotsetTier'      = 'a disk that is down'
    'Repair-HotsetTier'      = 'a disk whose metadata is damaged'
    'Move-HotsetDatabaseFile' = 'a second volume of the database'
    'HotsetDiskMember'       = 'a served array with a member that fails'
    'HotsetDiskArray '       = 'a served array'
    'Stop-HotsetDisk'        = 'a served array'
    'HotsetWarmupSchedule '  = 'systemd, and hotset installed for it'
    'Start-HotsetTraceRecording' = 'blktrace, and load'
    'Import-HotsetTrace'     = 'a recording of blkparse'
    'Invoke-HotsetDemo'      = 'ten minutes and a second lab'
    'Start-HotsetLab'        = 'a second lab'
    'New-HotsetLabImage'     = 'minutes, where the image is not built'
    'Stop-HotsetLab'         = 'the lab in which this runs'
    'Invoke-HotsetExperiment' = 'a second lab, and minutes'
    'Measure-HotsetArrayTest' = 'minutes, and bench tools'
    'Measure-HotsetDisk'     = 'fio, and minutes'
    'Compare-HotsetRun 20261120-2015' = 'a run of that name'
    'Test-HotsetPrediction'  = 'a prediction and the run that it is of'
    'Remove-HotsetProgram'   = 'a server with programs of an older version'
    'Stop-HotsetJob 2026'    = 'a job of that name'
}

# What stands in the examples, and what is here.
$here = [ordered] @{
    'sqlserver://db1/[a-z]+\?trust=yes'  = $env:DSN
    'postgresql://db1/shop'              = $env:DSN
    '-Credential (sa|app)'               = '-Credential $login'
    'table:public\.orders, index:orders_pkey' = 'table:hotset_tpcc.orders, index:hotset_tpcc.orders_pkey'
    '-Name orders'                       = '-Name hotset_tpcc.orders'
    'database:(shop|archive)'            = 'database:tpcc'
    '/srv/hotset/shop\.toml'             = "$Folder/shop.toml"
    '/srv/(hotset|sql)'                  = $Folder
    '\bshop\b(?!\.)'                     = 'lab'
    '-Warehouses \d+'                    = '-Warehouses 1'
    '-Users 32'                          = '-Users 2'
    '-Users 1, 2, 4, 8'                  = '-Users 1, 2'
    '-Scale \d+'                         = '-Scale 0.01'
    '-Since 8h'                          = '-Since boot'
    'report\.html|hits\.html'            = "$Folder/`$([guid]::NewGuid()).html"
    '100GiB|150GB'                       = '256MB'
    'Disconnect-Hotset db1'              = 'Disconnect-Hotset $server'
    '10GiB, 20GiB'                       = '10MiB, 20MiB'
    '^(New-HotsetTpc[ch]Database .*)$'   = '$1 -Replace'
    ' -Wait \|'                          = ' |'
    '-Run last'                          = '-Run 20261126-061610-demo'
    'HotsetPrediction last'              = 'HotsetPrediction 20261126-061610-demo'
}
# The three acts, and verbs that look.
$looks = '^(Get|Find|Test|Show|Compare|Wait|Export)-|^(Start-HotsetWarmup|Invoke-HotsetTpcc|Measure-HotsetTrend|Measure-HotsetDatabase|Connect-Hotset|Disconnect-Hotset)$'

$token = ConvertTo-SecureString $env:TOKEN -AsPlainText -Force
$login = New-Object pscredential $env:DB_USER, (ConvertTo-SecureString $env:DB_PASSWORD -AsPlainText -Force)
$null = Connect-Hotset $env:URI -Token $token
$PSDefaultParameterValues = @{
    '*-Hotset*:Confirm'                 = $false
    'Invoke-Hotset*:RampupSeconds'      = 0
    'Invoke-Hotset*:DurationSeconds'    = 1
    'Invoke-HotsetTpcc:Warehouses'      = 1
    'New-HotsetTpchDatabase:Scale'      = 0.01
    'Measure-HotsetDatabase:IntervalSeconds' = 0.1
}
# What they look at.
$null = Start-HotsetHeat lab -WarningAction Ignore
$null = 1..2 | ForEach-Object { Invoke-HotsetTpcc $env:DSN -Credential $login -Users 1 -NoCheck }
$null = New-HotsetTpccTrace -Warehouses 1 -Output "$Folder/shop.trace"
$null = New-HotsetTpchDatabase $env:DSN -Credential $login -Scale 0.01
$until = (Get-Date).AddSeconds(90)
while (-not (Get-HotsetHistory lab -ErrorAction Ignore) -and (Get-Date) -lt $until) { Start-Sleep 2 }
$null = New-HotsetSnapshot lab -Output "$Folder/shop.snapshot"

$found = foreach ($command in Get-Command -Module Hotset -CommandType Function) {
    foreach ($example in $command.ScriptBlock.Ast.GetHelpContent().Examples) {
        $code = ($example.Trim() -split '\r?\n\r?\n')[0]
        $why = @($boundOnly.Keys | Where-Object { "$code ".Contains($_) })
        if ($why) {
            if ($Which -eq 'reading') { @{ Code = $code; BoundOnly = $boundOnly[$why[0]] } }
            continue
        }
        if (($command.Name -match $looks) -ne ($Which -eq 'reading')) { continue }
        $real = $code
        foreach ($old in $here.Keys) { $real = $real -creplace $old, ($here[$old] -replace '\$(?!1)', '$$$$') }
        # One of them disconnects.
        $server = (Connect-Hotset $env:URI -Token $token).Server
        $failure = $null
        try {
            $null = & ([scriptblock]::Create("`$ErrorActionPreference = 'Stop'; $real")) 3> $null
        } catch {
            $failure = "$($_.FullyQualifiedErrorId): $($_.Exception.Message)"
        }
        @{ Code = $code; Ran = $real; Failure = $failure }
    }
}
ConvertTo-Json @($found) -Depth 3
