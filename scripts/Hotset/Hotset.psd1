@{
    RootModule           = 'Hotset.psm1'
    ModuleVersion        = '0.1.0'
    GUID                 = '6d3c1a52-7f0e-4c1b-9a86-2f4b8e0d5c37'
    Author               = 'The hotset authors'
    CompanyName          = 'The hotset authors'
    Copyright            = 'Apache License 2.0'
    Description          = 'Steers a hotset server by its HTTP API: warm-up of a flash cache, TPC-C and TPC-H, hit ratios, runs.'
    PowerShellVersion    = '5.1'
    CompatiblePSEditions = @('Desktop', 'Core')
    FormatsToProcess     = @('Hotset.format.ps1xml')
    FunctionsToExport    = @(
        'Compare-HotsetRun'
        'Connect-Hotset'
        'Get-HotsetDisk'
        'Get-HotsetHitRatio'
        'Get-HotsetJob'
        'Get-HotsetRun'
        'Get-HotsetWarmupPlan'
        'Invoke-HotsetTpcc'
        'Invoke-HotsetTpch'
        'Move-HotsetTempdb'
        'Set-HotsetSqlMemory'
        'Start-HotsetWarmup'
        'Stop-HotsetJob'
        'Wait-HotsetJob'
    )
    CmdletsToExport      = @()
    VariablesToExport    = @()
    AliasesToExport      = @()
    PrivateData          = @{
        PSData = @{
            Tags = @('hotset', 'SQLServer', 'dm-cache', 'bcache', 'TPC-C', 'TPC-H')
        }
    }
}
