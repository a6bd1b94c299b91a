# One request to a server: JSON in, JSON out, failures as ErrorRecords.

function Invoke-HotsetQuery {
    <#
    .SYNOPSIS
    Asks the servers for an operation that answers at once, and returns its objects.
    .DESCRIPTION
    A server that fails among several is an error of its own; the others are shown.
    #>
    param(
        [System.Management.Automation.PSCmdlet] $Caller,
        [object[]] $Connection,
        [string] $Operation,
        [hashtable] $Values = @{}
    )
    $sessions = @(Resolve-HotsetConnection $Caller $Connection)
    foreach ($session in $sessions) {
        $found = @()
        try {
            $answer = Invoke-HotsetOperation $session $Operation $Values
            $found = @(ConvertTo-HotsetOutput $Operation $answer $session.Server)
            Add-HotsetMachine $found $Values.machine
        } catch {
            Write-HotsetFailure $Caller $_ ($sessions.Count -gt 1 -or $Caller.MyInvocation.ExpectingInput)
        }
        $found
    }
}

function Add-HotsetMachine {
    <#
    .SYNOPSIS
    Has objects of another machine say so: by the pipeline they go back to it.
    #>
    param([object[]] $Found, [string] $Machine)
    if (-not $Machine) { return }
    foreach ($one in $Found) {
        if ($one -isnot [System.Management.Automation.PSCustomObject]) { continue }
        if ($null -ne $one.PSObject.Properties['Machine']) { continue }
        Add-Member -InputObject $one -NotePropertyName Machine -NotePropertyValue $Machine
    }
}

function Invoke-HotsetOperation {
    <#
    .SYNOPSIS
    Sends an operation to its place in the API.
    #>
    param(
        [hashtable] $Session,
        [string] $Operation,
        [hashtable] $Values
    )
    $known = $script:Operations[$Operation]
    Invoke-HotsetApi $Session $known.Method $known.Path $Values -Raw ([bool] $known.Raw)
}

function Invoke-HotsetApi {
    <#
    .SYNOPSIS
    Sends a request and returns its JSON as objects, named as the API names them.
    .PARAMETER Path
    As in the API's description. A {name} in it is taken from the values.
    .PARAMETER Values
    The fields of the body, or of the query where the method has no body. What is empty is not sent.
    .PARAMETER Raw
    Returns the text of the answer.
    #>
    param(
        [hashtable] $Session,
        [string] $Method,
        [string] $Path,
        [hashtable] $Values = @{},
        [int] $TimeoutSeconds = 600,
        [bool] $Raw = $false
    )
    # Whatever -ErrorAction the cmdlet was given, nothing goes on after a failure here.
    $ErrorActionPreference = 'Stop'
    $given = Select-HotsetValue $Values
    foreach ($name in @($given.Keys)) {
        if ($Path.Contains("{$name}")) {
            $Path = $Path.Replace("{$name}", [uri]::EscapeDataString([string] $given[$name]))
            $given.Remove($name)
        }
    }
    $uri = "$($Session.Uri)$Path"
    $body = ''
    if ($Method -eq 'Post') {
        $body = ConvertTo-Json $given -Depth 4 -Compress
    } elseif ($given.Count) {
        $uri += '?' + (ConvertTo-HotsetQuery $given)
    }
    Write-Verbose "$($Method.ToUpperInvariant()) $uri"
    try {
        $answer = Send-HotsetRequest $Session $Method $uri $body $TimeoutSeconds
    } catch {
        throw (Get-HotsetUnreached $_.Exception $Session $TimeoutSeconds)
    }
    if ($answer.Status -ge 300) { throw (ConvertTo-HotsetError $answer $Session) }
    if ($Raw) { return $answer.Text }
    if (-not $answer.Text) { return }
    try {
        ConvertFrom-Json $answer.Text
    } catch {
        throw (Get-HotsetStranger $Session 'it answered with something that is not JSON')
    }
}

function Send-HotsetRequest {
    <#
    .SYNOPSIS
    Sends a request; returns the status and the text of its answer.
    .DESCRIPTION
    Not by Invoke-WebRequest: its errors hold the request with the token, and stay in $Error. The
    token is in plain only here, for one request, and is no command's parameter, which logs have.
    #>
    param(
        [hashtable] $Session,
        [string] $Method,
        [string] $Uri,
        [string] $Body,
        [int] $TimeoutSeconds
    )
    $message = [Net.Http.HttpRequestMessage]::new($Method.ToUpperInvariant(), $Uri)
    $token = [Net.NetworkCredential]::new('', $Session.Token).Password
    $message.Headers.Authorization = [Net.Http.Headers.AuthenticationHeaderValue]::new('Bearer', $token)
    if ($Body) { $message.Content = [Net.Http.StringContent]::new($Body, [Text.Encoding]::UTF8, 'application/json') }
    $client = [Net.Http.HttpClient]::new((Get-HotsetHandler $Session))
    try {
        $client.Timeout = [timespan]::FromSeconds($TimeoutSeconds)
        $sending = $client.SendAsync($message)
        # Ctrl-C is heard between two of these.
        while (-not $sending.Wait(200)) { continue }
        # JSON without a charset is UTF-8.
        $bytes = $sending.Result.Content.ReadAsByteArrayAsync().Result
        @{ Status = [int] $sending.Result.StatusCode; Text = [Text.Encoding]::UTF8.GetString($bytes) }
    } finally {
        $client.Dispose()
    }
}

function Get-HotsetHandler {
    <#
    .SYNOPSIS
    How a server is connected to: nothing of it is the whole process's.
    #>
    param([hashtable] $Session)
    $handler = [Net.Http.HttpClientHandler]::new()
    $handler.AllowAutoRedirect = $false
    # http:// is this computer, and a proxy would read the token.
    $handler.UseProxy = $Session.Uri -notlike 'http://*'
    # Windows PowerShell may offer older ones only.
    if ($PSVersionTable.PSEdition -ne 'Core') { $handler.SslProtocols = 'Tls12' }
    if ($Session.SkipCertificateCheck) {
        # It is called on a thread without PowerShell, so that it cannot be a script block.
        $check = $handler.GetType().GetProperty('ServerCertificateCustomValidationCallback').PropertyType
        $parameters = foreach ($type in $check.GenericTypeArguments[0..3]) { [Linq.Expressions.Expression]::Parameter($type) }
        $accept = [Linq.Expressions.Expression]::Constant($true)
        $handler.ServerCertificateCustomValidationCallback = [Linq.Expressions.Expression]::Lambda($check, $accept, [Linq.Expressions.ParameterExpression[]] $parameters).Compile()
    }
    $handler
}

function Select-HotsetItem {
    <#
    .SYNOPSIS
    The items that a cmdlet asks for one by one; null, which asks for all, where there are none.
    .DESCRIPTION
    A connection by the pipeline names a server, and nothing on it. PowerShell binds its text to the
    parameter that takes strings, too: that is no item's name.
    #>
    param([string[]] $Item)
    if ($null -eq $Item -or $Item[0] -like '@{Server=*; Uri=http*') { return $null }
    $Item
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

function Get-HotsetSubject {
    <#
    .SYNOPSIS
    What a question names: the thing, the server it is on, and the machine if it is another.
    #>
    param([object[]] $Connection, [string] $Name, [string] $Machine)
    $servers = foreach ($one in $Connection) {
        $session = Find-HotsetSession $one
        if ($null -ne $session) { $session.Server }
    }
    if (-not $Connection -and $script:Sessions.Count) {
        $servers = $script:Sessions[$script:Sessions.Count - 1].Server
    }
    $where = "$($servers -join ', ')"
    if ($Machine) { $where = "$Machine, by $where" }
    if (-not $Name) { return $where }
    if (-not $where) { return $Name }
    "$Name on $where"
}
