function Connect-Hotset {
    <#
    .SYNOPSIS
    Connects this session to a hotset server.
    .DESCRIPTION
    Keeps the server's address and the token, which is asked for once and stays encrypted in memory;
    every other cmdlet uses them until the session ends or Connect-Hotset is called again. The
    server is asked at once, so that a wrong token is told here.

    A token is made on the server by "hotset console token create NAME" and taken back by
    "hotset console token revoke NAME".
    .PARAMETER Uri
    Where the console listens, such as https://db1:8480. http:// is accepted for this computer alone
    (an SSH tunnel), as the token would cross the network in plain.
    .PARAMETER Token
    The token.
    .PARAMETER Credential
    The token as the password of a credential, whose user name is not used: what Get-Credential and
    Import-Clixml give.
    .PARAMETER SkipCertificateCheck
    Accepts any certificate of this server, for one that signed its own. Whoever answers at the
    address gets the token then: better import the certificate into the computer's trusted roots.
    .OUTPUTS
    Hotset.Connection, with Uri and Jobs (how many the server keeps).
    .EXAMPLE
    Connect-Hotset https://db1:8480 -Token (Read-Host 'Token' -AsSecureString)
    .EXAMPLE
    Get-Credential hotset | Export-Clixml ~\hotset.xml
    Connect-Hotset https://db1:8480 -Credential (Import-Clixml ~\hotset.xml)

    Once by hand, then in scripts of the same user on the same computer.
    #>
    [CmdletBinding(DefaultParameterSetName = 'Token')]
    [OutputType('Hotset.Connection')]
    param(
        [Parameter(Mandatory, Position = 0)]
        [uri] $Uri,

        [Parameter(Mandatory, ParameterSetName = 'Token')]
        [securestring] $Token,

        [Parameter(Mandatory, ParameterSetName = 'Credential')]
        [pscredential] $Credential,

        [switch] $SkipCertificateCheck
    )
    if (-not $Uri.IsAbsoluteUri -or $Uri.Scheme -notin 'http', 'https') {
        $PSCmdlet.ThrowTerminatingError((New-HotsetError 'BadUri' 'InvalidArgument' `
            "-Uri $($Uri): give a full address, such as https://db1:8480."))
    }
    if ($Uri.Scheme -eq 'http' -and -not $Uri.IsLoopback) {
        $PSCmdlet.ThrowTerminatingError((New-HotsetError 'Unencrypted' 'SecurityError' `
            "-Uri $($Uri): the token would cross the network in plain. Use https://, or an SSH tunnel to this computer."))
    }
    if ($Credential) { $Token = $Credential.Password }
    if ($PSVersionTable.PSEdition -ne 'Core') {
        Enable-HotsetTls -Uri $Uri -SkipCertificateCheck $SkipCertificateCheck.IsPresent
    }
    $before = $script:Connection
    $script:Connection = @{
        Uri                  = $Uri.AbsoluteUri.TrimEnd('/')
        Token                = $Token
        SkipCertificateCheck = $SkipCertificateCheck.IsPresent
    }
    $answered = $false
    try {
        $answer = Invoke-HotsetApi $PSCmdlet Get '/jobs'
        $answered = $true
    } finally {
        if (-not $answered) { $script:Connection = $before }
    }
    [pscustomobject] @{
        PSTypeName = 'Hotset.Connection'
        Uri        = $script:Connection.Uri
        Jobs       = @($answer.jobs).Count
    }
}
