# The cmdlets of hotset: Private/ speaks HTTP and turns JSON into objects, Public/ has a file for
# each cmdlet. Everything here is plain ASCII, which Windows PowerShell 5.1 reads as it is meant.
Set-StrictMode -Version 1.0
$ErrorActionPreference = 'Stop'

# Set by Connect-Hotset: Uri, Token (a SecureString), SkipCertificateCheck.
$script:Connection = $null

foreach ($folder in 'Private', 'Public') {
    foreach ($file in Get-ChildItem -Path (Join-Path $PSScriptRoot $folder) -Filter '*.ps1') {
        . $file.FullName
    }
}
