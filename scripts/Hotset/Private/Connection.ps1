# The servers that this session is connected to.

# The servers that -Connection names; without it the one that was connected to last.
function Resolve-HotsetConnection {
    param([System.Management.Automation.PSCmdlet] $Caller, [object[]] $Connection)
    if (-not $Connection) {
        if ($script:Sessions.Count) { return $script:Sessions[$script:Sessions.Count - 1] }
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'NotConnected' 'ConnectionError' `
                'Not connected to a hotset server: run Connect-Hotset first.')
    }
    foreach ($one in $Connection) {
        $found = Find-HotsetSession $one
        if ($null -ne $found) {
            $found
        } else {
            $missing = Get-HotsetErrorRecord 'NotConnected' 'ConnectionError' `
                "Not connected to $($one): run Connect-Hotset $one first." $one
            Write-HotsetFailure $Caller $missing ($Connection.Count -gt 1)
        }
    }
}

# The connection that an object, an address or a name means; nothing if there is none. A connection
# means itself, also where it was not made: in a runspace of ForEach-Object -Parallel.
function Find-HotsetSession {
    param($Named)
    if ($Named.Token -is [securestring]) { return $Named }
    $name = [string] $Named
    if ($null -ne $Named.Uri) { $name = [string] $Named.Uri }
    $name = $name.TrimEnd('/')
    foreach ($session in $script:Sessions) {
        if ($name -in $session.Uri, $session.Server) { return $session }
    }
}

# The server, or the machine, that objects are from which are gathered into one request. Nothing
# where the caller was given one, and of texts and of others' objects.
function Get-HotsetOrigin {
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [object[]] $Given, [object[]] $From,
        [string] $Property = 'Server'
    )
    if ($Given) {
        if ($Property -eq 'Server') { foreach ($one in $From) { Assert-HotsetPlace $Caller $Given $one } }
        return
    }
    $places = New-Object System.Collections.Generic.List[string]
    foreach ($one in $From) {
        # Without a machine: the server's own.
        $place = [string] $one.$Property
        if (($one.PSObject.TypeNames -like '*Hotset.*') -and -not $places.Contains($place)) { $places.Add($place) }
    }
    if ($places.Count -gt 1) {
        $named = @($places | Where-Object { $_ }) -join ', '
        if ($places.Contains('')) { $named += ' and the server itself' }
        $by = @{ Server = '-Connection'; Machine = '-Machine'; Disk = '-Disk' }[$Property]
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord "Several$($Property)s" 'InvalidArgument' `
            "The objects are from $($named): name one by $by.")
    }
    @($places | Where-Object { $_ })
}

# Refuses an object that is sent to another server than it is from: there its name means another thing.
function Assert-HotsetPlace {
    param([System.Management.Automation.PSCmdlet] $Caller, [object[]] $Connection, $One)
    if (-not ($One.PSObject.TypeNames -like '*Hotset.*') -or -not $One.Server) { return }
    foreach ($session in @($Connection | ForEach-Object { Find-HotsetSession $_ })) {
        if ($session.Server -eq $One.Server) { continue }
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'OtherServer' 'InvalidArgument' `
                "-Connection: the object is from $($One.Server), not from $($session.Server): leave -Connection out, or give a name as text." $One)
    }
}

# A server's address from what a user writes: a name is https:// and the console's port. This
# computer alone is spoken to without encryption: a token would cross the network in plain.
function ConvertTo-HotsetUri {
    param([string] $Address)
    $text = $Address.Trim()
    if ($text -notmatch '^[a-z][a-z0-9+.-]*://') {
        $scheme = 'https'
        if ($text -match '^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$') { $scheme = 'http' }
        if ($text -notmatch ':\d+$') { $text = "$($text):8480" }
        $text = "$($scheme)://$text"
    }
    $uri = $null
    $parsed = [uri]::TryCreate($text, [System.UriKind]::Absolute, [ref] $uri)
    if (-not $parsed -or $uri.Scheme -notin 'http', 'https' -or -not $uri.Host) {
        return Get-HotsetErrorRecord 'BadUri' 'InvalidArgument' `
            "-Uri $($Address): give a server's name or its address, such as https://db1:8480." $Address
    }
    if ($uri.Scheme -eq 'http' -and -not $uri.IsLoopback) {
        return Get-HotsetErrorRecord 'Unencrypted' 'SecurityError' `
            "-Uri $($Address): the token would cross the network in plain. Use https://, or an SSH tunnel to this computer." $Address
    }
    $uri
}

# A connection whose server has answered; an ErrorRecord where it cannot be made.
function Open-HotsetSession {
    param([string] $Address, $Secret, [bool] $SkipCertificateCheck, [string] $Thumbprint, [string] $Proxy)
    if (-not $Address) {
        return Get-HotsetErrorRecord 'BadUri' 'InvalidArgument' `
            'No server: give -Uri, or set HOTSET_URI, such as https://db1:8480.'
    }
    $place = ConvertTo-HotsetUri $Address
    if ($place -isnot [uri]) { return $place }
    if ($Secret -isnot [securestring]) { return $Secret }
    $session = ConvertTo-HotsetSession $place $Secret $SkipCertificateCheck $Thumbprint $Proxy
    if ($session -is [System.Management.Automation.ErrorRecord]) { return $session }
    $answer = Invoke-HotsetApi $session Get '/api/v1/token' -TimeoutSeconds 15
    if ($answer -is [System.Management.Automation.ErrorRecord]) {
        # One that does not know this question is older.
        if ($answer.FullyQualifiedErrorId -ne 'Hotset.NotServed') { return $answer }
        $answer = @{ schema_version = 1 }
    }
    if ($null -eq $answer.schema_version) { return Get-HotsetStranger $session 'it answered' }
    $session.Version = $answer.version
    $session.Right = $answer.right
    $own = $MyInvocation.MyCommand.Module.Version
    if ($answer.schema_version -gt 1) {
        Write-Warning "$($session.Server) has a newer API than this module knows: update the module."
    } elseif ([string] $answer.version -ne [string] $own) {
        $theirs = if ($answer.version) { "hotset $($answer.version)" } else { 'an older hotset' }
        Write-Warning "$($session.Server) has $theirs, and this module is of $($own): what either lacks fails. $($session.Uri)/powershell/Hotset.zip is the module of that server."
    }
    $session
}

# A connection. Server is short: the port only where it is not the usual one.
function ConvertTo-HotsetSession {
    param([uri] $Uri, [securestring] $Token, [bool] $SkipCertificateCheck, [string] $Thumbprint, [string] $Proxy)
    # What .NET cannot take for a header it says in full.
    if ([Net.NetworkCredential]::new('', $Token).Password -notmatch '^[!-~]+\z') {
        return Get-HotsetErrorRecord 'NoToken' 'AuthenticationError' `
            'The token is empty, or has blanks, line breaks or letters that no token has: give it as "hotset console token create NAME" wrote it.'
    }
    $digits = ($Thumbprint -replace '^sha256:' -replace '[\s:-]').ToUpperInvariant()
    if ($digits -and $digits -notmatch '^[0-9A-F]{64}\z') {
        return Get-HotsetErrorRecord 'BadThumbprint' 'InvalidArgument' `
            "-Thumbprint $($Thumbprint): give the 64 hexadecimal digits of the certificate's SHA-256, which the console prints when it starts." $Thumbprint
    }
    if ($Proxy -and $Proxy -notmatch '^https?://[^\s/<>]+/?\z') {
        return Get-HotsetErrorRecord 'BadProxy' 'InvalidArgument' `
            "-Proxy $($Proxy): give the address of a proxy, such as http://proxy:3128." $Proxy
    }
    $server = $Uri.Host
    if ($Uri.Port -ne 8480) { $server = $Uri.Authority }
    [pscustomobject] @{
        PSTypeName           = 'Hotset.Connection'
        Server               = $server
        Uri                  = $Uri.AbsoluteUri.TrimEnd('/')
        Version              = $null
        Right                = $null
        Default              = $true
        SkipCertificateCheck = $SkipCertificateCheck
        Thumbprint           = ($digits -replace '(..)(?=.)', '$1-')
        Proxy                = $Proxy
        # A copy: whoever made it may dispose of it.
        Token                = $Token.Copy()
    }
}

# The token from a file or the environment, as a SecureString; an ErrorRecord where there is none.
# In this order: the file of -TokenPath, that of HOTSET_TOKEN_FILE, HOTSET_TOKEN, and the file
# .config/hotset/token of the user. A file that Export-Clixml wrote holds a SecureString or a
# credential; any other holds the token in its first line.
function Get-HotsetToken {
    param([string] $TokenPath)
    if (-not $TokenPath) { $TokenPath = $env:HOTSET_TOKEN_FILE }
    if (-not $TokenPath -and $env:HOTSET_TOKEN) { return ConvertTo-HotsetSecret $env:HOTSET_TOKEN }
    if (-not $TokenPath) {
        $folder = $env:XDG_CONFIG_HOME
        if (-not $folder) { $folder = Join-Path ([Environment]::GetFolderPath('UserProfile')) '.config' }
        $TokenPath = Join-Path (Join-Path $folder 'hotset') 'token'
        if (-not (Test-Path -LiteralPath $TokenPath)) {
            return Get-HotsetErrorRecord 'NoToken' 'AuthenticationError' `
                'No token: give -Token, -Credential or -TokenPath, or set HOTSET_TOKEN_FILE. "hotset console token create NAME" on the server makes one.'
        }
    }
    if (-not (Test-Path -LiteralPath $TokenPath -PathType Leaf)) {
        return Get-HotsetErrorRecord 'NoToken' 'AuthenticationError' `
            "-TokenPath $($TokenPath): there is no such file." $TokenPath
    }
    $why = 'the file holds no token.'
    try {
        $first = [string] (Get-Content -LiteralPath $TokenPath -TotalCount 1 -ErrorAction Stop)
        if ($first.StartsWith('<')) {
            $kept = Import-Clixml -LiteralPath $TokenPath -ErrorAction Stop
            if ($kept -is [pscredential]) { return $kept.Password }
            if ($kept -is [securestring]) { return $kept }
            $first = ''
        }
    } catch {
        $global:Error.RemoveAt(0)
        $first = ''
        $why = "the file cannot be read: $($_.Exception.Message)"
    }
    if ($first.Trim()) { return ConvertTo-HotsetSecret $first.Trim() }
    Get-HotsetErrorRecord 'NoToken' 'AuthenticationError' "-TokenPath $($TokenPath): $why" $TokenPath
}

# A text as a SecureString.
function ConvertTo-HotsetSecret {
    param([string] $Text)
    $secret = New-Object System.Security.SecureString
    foreach ($letter in $Text.ToCharArray()) { $secret.AppendChar($letter) }
    $secret.MakeReadOnly()
    $secret
}
