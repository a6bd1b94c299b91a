function Connect-Hotset {
    <#
    .SYNOPSIS
    Connects this session to hotset servers.
    .DESCRIPTION
    Keeps each server's address and the token, which stays encrypted in memory, until the session ends
    or Disconnect-Hotset is called. The server is asked at once, for at most 15 seconds, so that a
    wrong token is told here. Other cmdlets use the server that was connected to last, or those that
    their -Connection names.

    A token is made on the server by "hotset console token create NAME" and taken back by
    "hotset console token revoke NAME".

    Without -Token, -Credential and -TokenPath the token is taken from the file that the environment
    variable HOTSET_TOKEN_FILE names, from HOTSET_TOKEN, or from the file .config/hotset/token below
    the user's folder.
    .PARAMETER Uri
    Where the console listens, one or several: a name, such as db1, which means https://db1:8480, or
    a full address. The environment variable HOTSET_URI if left out. http:// is accepted for this
    computer alone (an SSH tunnel), as the token would cross the network in plain.
    .PARAMETER Token
    The token, as Read-Host -AsSecureString and Get-Secret give it.
    .PARAMETER Credential
    The token as the password of a credential, whose user name is not used: what Get-Credential and
    Import-Clixml give.
    .PARAMETER TokenPath
    A file that holds the token in its first line, or what Export-Clixml made of a SecureString or a
    credential: that one only the same user reads, on the same Windows computer.
    .PARAMETER Thumbprint
    Trusts this one certificate, whoever signed it: its SHA-256, as the console prints it when it
    starts. For a server that signed its own.
    .PARAMETER SkipCertificateCheck
    Accepts any certificate of this server. Whoever answers at the address gets the token then:
    -Thumbprint is better.
    .PARAMETER Proxy
    The address of a proxy, such as http://proxy:3128. Without it the server is connected to directly,
    whatever HTTP_PROXY and the system's settings name.
    .INPUTS
    System.String: -Uri
    .OUTPUTS
    Hotset.Connection, with Server, Uri, Version and Right (what the token may), and Default (it is
    used without -Connection).
    .EXAMPLE
    Connect-Hotset db1 -Token (Read-Host 'Token' -AsSecureString)
    .EXAMPLE
    $all = 'db1', 'db2', 'db3' | Connect-Hotset -Token (Get-Secret hotset)
    Get-HotsetTier -Connection $all | Sort-Object HitRatio

    The disks of three servers.
    .EXAMPLE
    Read-Host 'Token' -AsSecureString | Export-Clixml C:\jobs\hotset.xml
    Connect-Hotset https://db1:8480 -TokenPath C:\jobs\hotset.xml

    The first line once by hand, the second in the tasks of the same user on the same computer.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(DefaultParameterSetName = 'Environment')]
    [OutputType('Hotset.Connection')]
    param(
        [Parameter(Position = 0, ValueFromPipeline)]
        [Alias('Server', 'ComputerName')]
        [string[]] $Uri,

        [Parameter(Mandatory, ParameterSetName = 'Token')]
        [securestring] $Token,

        [Parameter(Mandatory, ParameterSetName = 'Credential')]
        [pscredential] $Credential,

        [Parameter(Mandatory, ParameterSetName = 'TokenPath')]
        [string] $TokenPath,

        [ValidateNotNullOrEmpty()]
        [string] $Thumbprint,

        [switch] $SkipCertificateCheck,

        [ValidateNotNullOrEmpty()]
        [string] $Proxy
    )
    process {
        $addresses = $Uri
        if (-not $addresses) { $addresses = @($env:HOTSET_URI) }
        $several = $addresses.Count -gt 1 -or $PSCmdlet.MyInvocation.ExpectingInput
        $secret = $Token
        # An empty credential has none, and stands for no token of the environment.
        if ($Credential) { $secret = if ($Credential.Password) { $Credential.Password } else { [securestring]::new() } }
        if ($null -eq $secret) { $secret = Get-HotsetToken $TokenPath }
        foreach ($address in $addresses) {
            $session = Open-HotsetSession $address $secret $SkipCertificateCheck.IsPresent $Thumbprint $Proxy
            if ($session -is [System.Management.Automation.ErrorRecord]) {
                Write-HotsetFailure $PSCmdlet $session $several
                continue
            }
            foreach ($other in $script:Sessions.ToArray()) {
                $other.Default = $false
                if ($other.Uri -eq $session.Uri) { $null = $script:Sessions.Remove($other) }
            }
            $script:Sessions.Add($session)
            $session
        }
    }
}
