# The cmdlets of hotset: Private/ speaks HTTP and turns JSON into objects, Public/Generated.ps1 has a
# cmdlet for each operation of the server, the other files of Public/ what is more than one request.
# Everything here is plain ASCII, which Windows PowerShell 5.1 reads as it is meant.
#
# No $ErrorActionPreference is set for the whole module: an error of one item among several is written
# by the cmdlet that was called, as the one who called it wants.
#
# No cmdlet of another module is called here: loading that would take a fifth of the import.
Set-StrictMode -Version 1.0
if ($PSVersionTable.PSEdition -ne 'Core') { Add-Type -AssemblyName System.Net.Http }

# What Connect-Hotset returned, for each server.
$script:Sessions = [System.Collections.Generic.List[psobject]]::new()

foreach ($folder in 'Private', 'Public') {
    foreach ($file in [System.IO.Directory]::GetFiles("$PSScriptRoot/$folder", '*.ps1')) { . $file }
}
Register-HotsetCompleter
