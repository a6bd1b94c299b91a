# The cmdlets of hotset: Private/ speaks HTTP and turns JSON into objects, Public/Generated.ps1 has a
# cmdlet for each operation of the server, the other files of Public/ what is more than one request.
# Everything here is plain ASCII, which Windows PowerShell 5.1 reads as it is meant.
#
# No $ErrorActionPreference is set for the whole module: an error of one item among several is written
# by the cmdlet that was called, as the one who called it wants.
Set-StrictMode -Version 1.0
Add-Type -AssemblyName System.Net.Http

# What Connect-Hotset returned, for each server.
$script:Sessions = New-Object System.Collections.Generic.List[psobject]

foreach ($folder in 'Private', 'Public') {
    foreach ($file in Get-ChildItem -LiteralPath (Join-Path $PSScriptRoot $folder) -Filter '*.ps1') {
        . $file.FullName
    }
}

# Names that cmdlets had before.
Set-Alias -Name Get-HotsetDisk -Value Get-HotsetTier
Set-Alias -Name Move-HotsetTempdb -Value Move-HotsetDatabaseFile
Set-Alias -Name Set-HotsetSqlMemory -Value Set-HotsetDatabaseMemory

Register-HotsetCompleter
