# One request to the server: JSON in, JSON out, failures as ErrorRecords.

function Invoke-HotsetApi {
    <#
    .SYNOPSIS
    Sends a request to the API and returns its JSON as objects, named as the API names them.
    .PARAMETER Path
    As in the API's description, below /api/v1. A {name} in it is taken from the values.
    .PARAMETER Values
    The fields of the body, or of the query where the method has no body. What is empty is not sent.
    .PARAMETER Caller
    The cmdlet the user called: a failure is an error of that one.
    #>
    param(
        [System.Management.Automation.PSCmdlet] $Caller,
        [string] $Method,
        [string] $Path,
        [hashtable] $Values = @{}
    )
    # Whatever -ErrorAction the cmdlet was given, nothing goes on after a failure here.
    $ErrorActionPreference = 'Stop'
    if ($null -eq $script:Connection) {
        $Caller.ThrowTerminatingError((New-HotsetError 'NotConnected' 'ConnectionError' `
            'Not connected to a hotset server: run Connect-Hotset first.'))
    }
    $given = Select-HotsetValue $Values
    foreach ($name in @($given.Keys)) {
        if ($Path.Contains("{$name}")) {
            $Path = $Path.Replace("{$name}", [uri]::EscapeDataString([string] $given[$name]))
            $given.Remove($name)
        }
    }
    $request = @{
        Method             = $Method
        Uri                = "$($script:Connection.Uri)/api/v1$Path"
        Headers            = Get-HotsetHeader
        UseBasicParsing    = $true
        MaximumRedirection = 0
        TimeoutSec         = 600
        # A request's own messages would show the token and the password.
        Verbose            = $false
        Debug              = $false
    }
    if ($Method -eq 'Post') {
        $request.ContentType = 'application/json; charset=utf-8'
        $request.Body = [Text.Encoding]::UTF8.GetBytes((ConvertTo-Json $given -Depth 4 -Compress))
    } elseif ($given.Count) {
        $request.Uri += '?' + (ConvertTo-HotsetQuery $given)
    }
    if ($script:Connection.SkipCertificateCheck -and $PSVersionTable.PSEdition -eq 'Core') {
        $request.SkipCertificateCheck = $true
    }
    Write-Verbose "$($Method.ToUpperInvariant()) $($request.Uri)"
    $ProgressPreference = 'SilentlyContinue'
    try {
        $response = Invoke-WebRequest @request
    } catch {
        $Caller.ThrowTerminatingError((ConvertTo-HotsetError $_))
    }
    # Windows PowerShell takes JSON without a charset for Latin-1; it is always UTF-8.
    $text = [Text.Encoding]::UTF8.GetString($response.RawContentStream.ToArray())
    if ($text) { ConvertFrom-Json $text }
}

function Select-HotsetValue {
    <#
    .SYNOPSIS
    The values that were given; a switch becomes true.
    #>
    param([hashtable] $Values)
    $given = @{}
    foreach ($name in $Values.Keys) {
        $value = $Values[$name]
        if ($null -eq $value -or '' -eq [string] $value) { continue }
        if ($value -is [switch]) {
            if ($value.IsPresent) { $given[$name] = $true }
        } else {
            $given[$name] = $value
        }
    }
    $given
}

function ConvertTo-HotsetQuery {
    <#
    .SYNOPSIS
    Values as a query string; a list repeats its name.
    #>
    param([hashtable] $Values)
    $pairs = foreach ($name in $Values.Keys) {
        foreach ($value in $Values[$name]) {
            $text = [string] $value
            if ($value -is [bool]) { $text = $text.ToLowerInvariant() }
            "$name=$([uri]::EscapeDataString($text))"
        }
    }
    $pairs -join '&'
}

function Get-HotsetHeader {
    <#
    .SYNOPSIS
    The header with the token, which is in plain only here and for one request.
    #>
    $token = (New-Object System.Net.NetworkCredential '', $script:Connection.Token).Password
    @{ Authorization = "Bearer $token" }
}

function Resolve-HotsetLogin {
    <#
    .SYNOPSIS
    A database's address with the user in it, and the password apart from it.
    #>
    param(
        [System.Management.Automation.PSCmdlet] $Caller,
        [string] $Dsn,
        [pscredential] $Credential
    )
    $ErrorActionPreference = 'Stop'
    $login = @{ Dsn = $Dsn; Password = $null }
    if ($Dsn -match '^[a-z]+://[^/@]*:[^/@]*@') {
        $Caller.ThrowTerminatingError((New-HotsetError 'PasswordInDsn' 'InvalidArgument' `
            '-Dsn holds a password: leave it out and give it by -Credential.'))
    }
    if (-not $Credential.UserName) { return $login }
    $login.Password = $Credential.GetNetworkCredential().Password
    $user = [uri]::EscapeDataString($Credential.UserName)
    if ($Dsn -notlike '*://*') {
        $Caller.ThrowTerminatingError((New-HotsetError 'BadDsn' 'InvalidArgument' `
            "-Dsn $($Dsn): write an address, such as sqlserver://db1/shop, to which -Credential adds the user."))
    }
    if ($Dsn -match '^[a-z]+://(?<user>[^/@]+)@') {
        if ($Matches['user'] -ne $user) {
            $Caller.ThrowTerminatingError((New-HotsetError 'TwoUsers' 'InvalidArgument' `
                "-Dsn names user $($Matches['user']) and -Credential names $($user): name one."))
        }
    } else {
        $login.Dsn = $Dsn -replace '://@?', "://$($user)@"
    }
    $login
}
