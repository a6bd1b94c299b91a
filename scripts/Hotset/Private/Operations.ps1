# Generated from the table of operations: run `make docs`.
# Per operation: its cmdlet, its place in the API, the type of its objects, the list of
# the result that holds them, and whether the answer is text.
$script:Operations = @{
    'audit'                  = @{ Cmdlet = 'Get-HotsetAudit'; Method = 'Post'; Path = '/api/v1/audit'; Type = 'Hotset.Audit'; Items = 'entries' }
    'database clear-cache'   = @{ Cmdlet = 'Clear-HotsetDatabaseCache'; Method = 'Post'; Path = '/api/v1/database/clear-cache' }
    'database counters'      = @{ Cmdlet = 'Measure-HotsetDatabase'; Method = 'Post'; Path = '/api/v1/database/counters'; Type = 'Hotset.DatabaseCounters' }
    'database memory'        = @{ Cmdlet = 'Set-HotsetDatabaseMemory'; Method = 'Post'; Path = '/api/v1/database/memory' }
    'database place'         = @{ Cmdlet = 'Move-HotsetDatabaseFile'; Method = 'Post'; Path = '/api/v1/database/place' }
    'database show'          = @{ Cmdlet = 'Get-HotsetDatabase'; Method = 'Post'; Path = '/api/v1/database/show'; Type = 'Hotset.Database' }
    'database statistics'    = @{ Cmdlet = 'Update-HotsetDatabaseStatistic'; Method = 'Post'; Path = '/api/v1/database/statistics' }
    'demo'                   = @{ Cmdlet = 'Invoke-HotsetDemo'; Method = 'Post'; Path = '/api/v1/demo'; Type = 'Hotset.RunDocument' }
    'disk arrays'            = @{ Cmdlet = 'Measure-HotsetArrayTest'; Method = 'Post'; Path = '/api/v1/disk/arrays'; Type = 'Hotset.ArrayTest'; Items = 'lines' }
    'disk bench'             = @{ Cmdlet = 'Measure-HotsetDiskSpeed'; Method = 'Post'; Path = '/api/v1/disk/bench'; Type = 'Hotset.DiskSpeed'; Items = 'cells' }
    'disk calibrate'         = @{ Cmdlet = 'Measure-HotsetDisk'; Method = 'Post'; Path = '/api/v1/disk/calibrate'; Type = 'Hotset.DiskCalibration'; Items = 'lines' }
    'disk calibrate-all'     = @{ Cmdlet = 'Measure-HotsetDiskModel'; Method = 'Post'; Path = '/api/v1/disk/calibrate-all'; Type = 'Hotset.DiskFidelity'; Items = 'cells' }
    'disk fail'              = @{ Cmdlet = 'Disable-HotsetDiskMember'; Method = 'Post'; Path = '/api/v1/disk/fail'; Type = 'Hotset.DiskArray'; Items = 'members' }
    'disk models'            = @{ Cmdlet = 'Get-HotsetDiskModel'; Method = 'Post'; Path = '/api/v1/disk/models'; Type = 'Hotset.DiskModel'; Items = 'models' }
    'disk power-cut'         = @{ Cmdlet = 'Stop-HotsetDisk'; Method = 'Post'; Path = '/api/v1/disk/power-cut'; Type = 'Hotset.Disk' }
    'disk raffle'            = @{ Cmdlet = 'Measure-HotsetDiskRaffle'; Method = 'Post'; Path = '/api/v1/disk/raffle'; Type = 'Hotset.DiskRaffle'; Items = 'passes' }
    'disk replace'           = @{ Cmdlet = 'Repair-HotsetDiskMember'; Method = 'Post'; Path = '/api/v1/disk/replace'; Type = 'Hotset.DiskArray'; Items = 'members' }
    'disk reread'            = @{ Cmdlet = 'Measure-HotsetDiskReread'; Method = 'Post'; Path = '/api/v1/disk/reread'; Type = 'Hotset.DiskReread'; Items = 'disks' }
    'disk status'            = @{ Cmdlet = 'Get-HotsetDiskArray'; Method = 'Post'; Path = '/api/v1/disk/status'; Type = 'Hotset.DiskArray'; Items = 'members' }
    'doctor'                 = @{ Cmdlet = 'Test-HotsetHost'; Method = 'Post'; Path = '/api/v1/doctor'; Type = 'Hotset.HostCheck'; Items = 'findings' }
    'experiment plan'        = @{ Cmdlet = 'Show-HotsetExperiment'; Method = 'Post'; Path = '/api/v1/experiment/plan' }
    'experiment run'         = @{ Cmdlet = 'Invoke-HotsetExperiment'; Method = 'Post'; Path = '/api/v1/experiment/run'; Type = 'Hotset.RunDocument' }
    'heat map'               = @{ Cmdlet = 'Get-HotsetHeatMap'; Method = 'Post'; Path = '/api/v1/heat/map'; Type = 'Hotset.HeatMap'; Items = 'cells' }
    'heat start'             = @{ Cmdlet = 'Start-HotsetHeat'; Method = 'Post'; Path = '/api/v1/heat/start' }
    'heat stop'              = @{ Cmdlet = 'Stop-HotsetHeat'; Method = 'Post'; Path = '/api/v1/heat/stop' }
    'heat top'               = @{ Cmdlet = 'Get-HotsetHeat'; Method = 'Post'; Path = '/api/v1/heat/top'; Type = 'Hotset.Heat'; Items = 'rows' }
    'lab calibrate'          = @{ Cmdlet = 'Measure-HotsetLab'; Method = 'Post'; Path = '/api/v1/lab/calibrate'; Type = 'Hotset.LabSlowdown' }
    'lab down'               = @{ Cmdlet = 'Stop-HotsetLab'; Method = 'Post'; Path = '/api/v1/lab/down' }
    'lab image'              = @{ Cmdlet = 'New-HotsetLabImage'; Method = 'Post'; Path = '/api/v1/lab/image' }
    'lab status'             = @{ Cmdlet = 'Get-HotsetLab'; Method = 'Post'; Path = '/api/v1/lab/status'; Type = 'Hotset.Lab' }
    'lab up'                 = @{ Cmdlet = 'Start-HotsetLab'; Method = 'Post'; Path = '/api/v1/lab/up' }
    'programs list'          = @{ Cmdlet = 'Get-HotsetProgram'; Method = 'Post'; Path = '/api/v1/programs/list'; Type = 'Hotset.Program'; Items = 'copies' }
    'programs rm'            = @{ Cmdlet = 'Remove-HotsetProgram'; Method = 'Post'; Path = '/api/v1/programs/rm' }
    'report history'         = @{ Cmdlet = 'Get-HotsetHistory'; Method = 'Post'; Path = '/api/v1/report/history'; Type = 'Hotset.History'; Items = 'rows' }
    'report hit-ratio'       = @{ Cmdlet = 'Get-HotsetHitRatio'; Method = 'Post'; Path = '/api/v1/report/hit-ratio'; Type = 'Hotset.HitRatio'; Items = 'rows' }
    'report metrics'         = @{ Cmdlet = 'Get-HotsetMetric'; Method = 'Get'; Path = '/metrics'; Raw = $true }
    'report run'             = @{ Cmdlet = 'Export-HotsetReport'; Method = 'Get'; Path = '/api/v1/runs/{run}/report'; Raw = $true }
    'runs compare'           = @{ Cmdlet = 'Compare-HotsetRun'; Method = 'Get'; Path = '/api/v1/runs/compare'; Type = 'Hotset.Comparison'; Items = 'lines' }
    'runs list'              = @{ Cmdlet = 'Get-HotsetRun'; Method = 'Get'; Path = '/api/v1/runs'; Type = 'Hotset.Run'; Items = 'runs' }
    'runs rm'                = @{ Cmdlet = 'Remove-HotsetRun'; Method = 'Delete'; Path = '/api/v1/runs/{run}' }
    'runs show'              = @{ Cmdlet = 'Get-HotsetRunResult'; Method = 'Get'; Path = '/api/v1/runs/{run}'; Type = 'Hotset.RunDocument' }
    'runs trend'             = @{ Cmdlet = 'Measure-HotsetTrend'; Method = 'Get'; Path = '/api/v1/runs/{run}/trend'; Type = 'Hotset.Trend' }
    'sql run'                = @{ Cmdlet = 'Invoke-HotsetSql'; Method = 'Post'; Path = '/api/v1/sql/run'; Type = 'Hotset.SqlRun' }
    'tier activate'          = @{ Cmdlet = 'Enable-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/activate' }
    'tier create'            = @{ Cmdlet = 'New-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/create' }
    'tier deactivate'        = @{ Cmdlet = 'Disable-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/deactivate' }
    'tier destroy'           = @{ Cmdlet = 'Remove-HotsetCard'; Method = 'Post'; Path = '/api/v1/tier/destroy' }
    'tier detach'            = @{ Cmdlet = 'Remove-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/detach' }
    'tier explain'           = @{ Cmdlet = 'Get-HotsetExplanation'; Method = 'Post'; Path = '/api/v1/tier/explain'; Type = 'Hotset.Explanation' }
    'tier flush'             = @{ Cmdlet = 'Sync-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/flush' }
    'tier health'            = @{ Cmdlet = 'Get-HotsetHealth'; Method = 'Post'; Path = '/api/v1/tier/health'; Type = 'Hotset.Health'; Items = 'findings' }
    'tier import'            = @{ Cmdlet = 'Import-HotsetCard'; Method = 'Post'; Path = '/api/v1/tier/import' }
    'tier repair'            = @{ Cmdlet = 'Repair-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/repair' }
    'tier resident'          = @{ Cmdlet = 'Get-HotsetCachedRange'; Method = 'Post'; Path = '/api/v1/tier/resident'; Type = 'Hotset.CachedRange'; Items = 'runs' }
    'tier resize'            = @{ Cmdlet = 'Resize-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/resize' }
    'tier scan'              = @{ Cmdlet = 'Find-HotsetCard'; Method = 'Post'; Path = '/api/v1/tier/scan'; Type = 'Hotset.Card'; Items = 'flash_devices' }
    'tier set'               = @{ Cmdlet = 'Set-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/set' }
    'tier status'            = @{ Cmdlet = 'Get-HotsetTier'; Method = 'Post'; Path = '/api/v1/tier/status'; Type = 'Hotset.Disk'; Items = 'disks' }
    'tpcc build'             = @{ Cmdlet = 'New-HotsetTpccDatabase'; Method = 'Post'; Path = '/api/v1/tpcc/build' }
    'tpcc check'             = @{ Cmdlet = 'Test-HotsetTpccDatabase'; Method = 'Post'; Path = '/api/v1/tpcc/check'; Type = 'Hotset.TpccCondition'; Items = 'conditions' }
    'tpcc drop'              = @{ Cmdlet = 'Remove-HotsetTpccDatabase'; Method = 'Post'; Path = '/api/v1/tpcc/drop' }
    'tpcc run'               = @{ Cmdlet = 'Invoke-HotsetTpcc'; Method = 'Post'; Path = '/api/v1/tpcc/run'; Type = 'Hotset.TpccRun' }
    'tpch build'             = @{ Cmdlet = 'New-HotsetTpchDatabase'; Method = 'Post'; Path = '/api/v1/tpch/build' }
    'tpch check'             = @{ Cmdlet = 'Test-HotsetTpchDatabase'; Method = 'Post'; Path = '/api/v1/tpch/check'; Type = 'Hotset.TpchCheck' }
    'tpch drop'              = @{ Cmdlet = 'Remove-HotsetTpchDatabase'; Method = 'Post'; Path = '/api/v1/tpch/drop' }
    'tpch run'               = @{ Cmdlet = 'Invoke-HotsetTpch'; Method = 'Post'; Path = '/api/v1/tpch/run'; Type = 'Hotset.TpchRun' }
    'warmup exclude'         = @{ Cmdlet = 'Add-HotsetExclusion'; Method = 'Post'; Path = '/api/v1/warmup/exclude' }
    'warmup list'            = @{ Cmdlet = 'Get-HotsetPin'; Method = 'Post'; Path = '/api/v1/warmup/list'; Type = 'Hotset.Pin'; Items = 'preferences' }
    'warmup pin'             = @{ Cmdlet = 'Add-HotsetPin'; Method = 'Post'; Path = '/api/v1/warmup/pin' }
    'warmup plan'            = @{ Cmdlet = 'Get-HotsetWarmupPlan'; Method = 'Post'; Path = '/api/v1/warmup/plan'; Type = 'Hotset.WarmupPlan'; Items = 'targets' }
    'warmup plans'           = @{ Cmdlet = 'Get-HotsetWarmup'; Method = 'Post'; Path = '/api/v1/warmup/plans'; Type = 'Hotset.Warmup'; Items = 'jobs' }
    'warmup refresh'         = @{ Cmdlet = 'Update-HotsetPin'; Method = 'Post'; Path = '/api/v1/warmup/refresh' }
    'warmup restore'         = @{ Cmdlet = 'Restore-HotsetSnapshot'; Method = 'Post'; Path = '/api/v1/warmup/restore'; Type = 'Hotset.WarmupRun' }
    'warmup run'             = @{ Cmdlet = 'Start-HotsetWarmup'; Method = 'Post'; Path = '/api/v1/warmup/run'; Type = 'Hotset.WarmupRun' }
    'warmup schedule add'    = @{ Cmdlet = 'Register-HotsetWarmupSchedule'; Method = 'Post'; Path = '/api/v1/warmup/schedule/add' }
    'warmup schedule list'   = @{ Cmdlet = 'Get-HotsetWarmupSchedule'; Method = 'Post'; Path = '/api/v1/warmup/schedule/list'; Type = 'Hotset.WarmupSchedule'; Items = 'schedules' }
    'warmup schedule remove' = @{ Cmdlet = 'Unregister-HotsetWarmupSchedule'; Method = 'Post'; Path = '/api/v1/warmup/schedule/remove' }
    'warmup share'           = @{ Cmdlet = 'Add-HotsetShare'; Method = 'Post'; Path = '/api/v1/warmup/share' }
    'warmup snapshot'        = @{ Cmdlet = 'New-HotsetSnapshot'; Method = 'Post'; Path = '/api/v1/warmup/snapshot' }
    'warmup targets'         = @{ Cmdlet = 'Get-HotsetTarget'; Method = 'Post'; Path = '/api/v1/warmup/targets'; Type = 'Hotset.Target'; Items = 'targets' }
    'warmup unpin'           = @{ Cmdlet = 'Remove-HotsetPin'; Method = 'Post'; Path = '/api/v1/warmup/unpin' }
    'whatif advise'          = @{ Cmdlet = 'Get-HotsetCacheAdvice'; Method = 'Post'; Path = '/api/v1/whatif/advise'; Type = 'Hotset.CacheAdvice' }
    'whatif check'           = @{ Cmdlet = 'Test-HotsetPrediction'; Method = 'Post'; Path = '/api/v1/whatif/check'; Type = 'Hotset.PredictionCheck' }
    'whatif flash'           = @{ Cmdlet = 'Get-HotsetFlashNeed'; Method = 'Post'; Path = '/api/v1/whatif/flash'; Type = 'Hotset.FlashNeed'; Items = 'needs' }
    'whatif mrc'             = @{ Cmdlet = 'Get-HotsetHitCurve'; Method = 'Post'; Path = '/api/v1/whatif/mrc'; Type = 'Hotset.HitCurve' }
    'whatif predict'         = @{ Cmdlet = 'Get-HotsetPrediction'; Method = 'Post'; Path = '/api/v1/whatif/predict'; Type = 'Hotset.Prediction'; Items = 'lines' }
    'whatif record'          = @{ Cmdlet = 'Start-HotsetTraceRecording'; Method = 'Post'; Path = '/api/v1/whatif/record'; Type = 'Hotset.TraceRecording' }
    'whatif simulate'        = @{ Cmdlet = 'Invoke-HotsetSimulation'; Method = 'Post'; Path = '/api/v1/whatif/simulate'; Type = 'Hotset.Simulation' }
    'whatif trace convert'   = @{ Cmdlet = 'Import-HotsetTrace'; Method = 'Post'; Path = '/api/v1/whatif/trace/convert'; Type = 'Hotset.Trace' }
    'whatif trace show'      = @{ Cmdlet = 'Get-HotsetTrace'; Method = 'Post'; Path = '/api/v1/whatif/trace/show'; Type = 'Hotset.Trace' }
    'whatif trace tpcc'      = @{ Cmdlet = 'New-HotsetTpccTrace'; Method = 'Post'; Path = '/api/v1/whatif/trace/tpcc'; Type = 'Hotset.TpccTrace' }
    'whatif trace tpch'      = @{ Cmdlet = 'New-HotsetTpchTrace'; Method = 'Post'; Path = '/api/v1/whatif/trace/tpch'; Type = 'Hotset.TpchTrace' }
}

# Fields whose parameters have other names.
$script:ParameterNames = @{
    check    = 'NoCheck'
    duration = 'DurationSeconds'
    interval = 'IntervalSeconds'
    job      = 'Id'
    keep     = 'NoKeep'
    password = 'Credential'
    rampup   = 'RampupSeconds'
    reserve  = 'NoReserve'
    runs     = 'Run'
    targets  = 'Target'
    timeout  = 'QueryTimeoutSeconds'
}

# Which cmdlets have a parameter whose values the server can tell.
$script:Completed = @{
    Disk    = @(
        'Get-HotsetHeatMap'
        'Start-HotsetHeat'
        'Stop-HotsetHeat'
        'Get-HotsetHeat'
        'Get-HotsetHistory'
        'Enable-HotsetTier'
        'Disable-HotsetTier'
        'Remove-HotsetTier'
        'Get-HotsetExplanation'
        'Sync-HotsetTier'
        'Get-HotsetHealth'
        'Repair-HotsetTier'
        'Get-HotsetCachedRange'
        'Resize-HotsetTier'
        'Set-HotsetTier'
        'Get-HotsetTier'
        'Add-HotsetExclusion'
        'Get-HotsetPin'
        'Add-HotsetPin'
        'Get-HotsetWarmupPlan'
        'Update-HotsetPin'
        'Restore-HotsetSnapshot'
        'Start-HotsetWarmup'
        'Register-HotsetWarmupSchedule'
        'Add-HotsetShare'
        'New-HotsetSnapshot'
        'Remove-HotsetPin'
        'Get-HotsetFlashNeed'
    )
    Card    = @(
        'Remove-HotsetCard'
    )
    Run     = @(
        'Remove-HotsetRun'
        'Get-HotsetRunResult'
        'Measure-HotsetTrend'
        'Get-HotsetCacheAdvice'
        'Test-HotsetPrediction'
        'Get-HotsetFlashNeed'
        'Get-HotsetPrediction'
    )
    Target  = @(
        'Add-HotsetExclusion'
        'Add-HotsetPin'
        'Get-HotsetWarmupPlan'
        'Start-HotsetWarmup'
        'Register-HotsetWarmupSchedule'
        'Add-HotsetShare'
        'Remove-HotsetPin'
    )
    Pin     = @(
        'Get-HotsetWarmupPlan'
        'Start-HotsetWarmup'
    )
    Exclude = @(
        'Get-HotsetWarmupPlan'
        'Start-HotsetWarmup'
    )
    Resume  = @(
        'Start-HotsetWarmup'
    )
    Name    = @(
        'Unregister-HotsetWarmupSchedule'
    )
    Model   = @(
        'Measure-HotsetDiskSpeed'
        'Measure-HotsetDisk'
        'Measure-HotsetDiskRaffle'
        'Measure-HotsetDiskReread'
        'Start-HotsetLab'
    )
}
