# One request to a server: JSON in, JSON out, failures as ErrorRecords.

# Asks the servers for an operation that answers at once, and returns its objects. A server that
# fails among several is an error of its own; the others are shown.
function Invoke-HotsetQuery {
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [object[]] $Connection, [string] $Operation,
        [hashtable] $Values = @{}, [string] $Like = ''
    )
    $sessions = @(Resolve-HotsetConnection $Caller $Connection)
    # A bracket that nothing closes means itself.
    $name, $pattern = ($Like -replace '\[(?![^\]]+\])', '`[').Split('=', 2)
    foreach ($session in $sessions) {
        $answer = Invoke-HotsetOperation $session $Operation $Values
        if ($answer -is [System.Management.Automation.ErrorRecord]) {
            $goOn = $sessions.Count -gt 1 -or $Caller.MyInvocation.ExpectingInput
            Write-HotsetFailure $Caller (Add-HotsetPlace $answer $session $sessions) $goOn
            continue
        }
        # One by one: Select-Object -First takes no more than it needs.
        ConvertTo-HotsetOutput $Operation $answer $session.Server |
            Add-HotsetMachine $Values.machine $Values.disk $Values.dsn |
            Where-Object { -not $Like -or $_.$name -like $pattern }
    }
}

# Has objects of another machine, and of a disk or a database that was named, say so: by the pipeline
# they go back to it.
filter Add-HotsetMachine {
    param([string] $Machine, [string] $Disk, [string] $Dsn)
    if (-not "$Machine$Disk$Dsn") { return $_ }
    $places = @{ Machine = $Machine; Disk = $Disk; Dsn = $Dsn }
    foreach ($name in $places.Keys) {
        if (-not $places[$name] -or $_ -isnot [System.Management.Automation.PSCustomObject]) { continue }
        if ($null -eq $_.PSObject.Properties[$name]) { Add-Member -InputObject $_ -NotePropertyName $name -NotePropertyValue $places[$name] }
    }
    $_
}

# Sends an operation to its place in the API; an ErrorRecord where it fails.
function Invoke-HotsetOperation {
    param([psobject] $Session, [string] $Operation, [hashtable] $Values, [bool] $Starts = $false)
    $known = $script:Operations[$Operation]
    Invoke-HotsetApi $Session $known.Method $known.Path $Values -Raw ([bool] $known.Raw) -Starts $Starts
}

# Sends a request and returns its JSON as objects, named as the API names them. A failure is
# returned, as an ErrorRecord. It is not thrown: every throw on the way to the one who called would
# be an entry of -ErrorVariable and of $Error.
# Path: As in the API's description. A {name} in it is taken from the values.
# Values: The fields of the body, or of the query where the method has no body. What is empty is not
# sent.
# Raw: Returns the text of the answer.
# Starts: It starts a job. Sent again after a 503 it might start another.
function Invoke-HotsetApi {
    param(
        [psobject] $Session, [string] $Method, [string] $Path, [hashtable] $Values = @{},
        [int] $TimeoutSeconds = 600, [bool] $Raw = $false, [bool] $Starts = $false
    )
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
    $again = @(429) + @(if (-not $Starts) { 503 })
    $watch = [System.Diagnostics.Stopwatch]::StartNew()
    while ($true) {
        $answer = Send-HotsetRequest $Session $Method $uri $body $TimeoutSeconds
        # Tab waits for nobody, and other sessions of the token not for the same moment.
        $isLate = $watch.Elapsed.TotalSeconds -ge [math]::Min(60, $TimeoutSeconds)
        if ($answer.Status -notin $again -or $isLate -or $TimeoutSeconds -le 1) { break }
        Start-Sleep -Milliseconds (Get-Random -Minimum 500 -Maximum 3000)
    }
    if ($answer.Failed) { return Get-HotsetUnreached $answer.Failed $Session $TimeoutSeconds }
    if ($answer.Status -ge 300) { return ConvertTo-HotsetError $answer $Session }
    if ($Raw) { return $answer.Text }
    if (-not $answer.Text) { return }
    $read = ConvertFrom-HotsetJson $answer.Text
    if ($null -ne $read) { $read } else { Get-HotsetStranger $Session 'it answered with something that is not JSON' }
}

# A client for each address and way to trust: it keeps the connection between two requests.
$script:Clients = @{}

# Sends a request; returns the status and the text of its answer, or what it Failed with. Not by
# Invoke-WebRequest: its errors hold the request with the token, and stay in $Error. The token is in
# plain only here, for one request, and is no command's parameter, which logs have.
function Send-HotsetRequest {
    param([psobject] $Session, [string] $Method, [string] $Uri, [string] $Body, [int] $TimeoutSeconds)
    $key = "$($Session.Uri) $($Session.SkipCertificateCheck) $($Session.Thumbprint) $($Session.Proxy)"
    $client = $script:Clients[$key]
    if ($null -eq $client) {
        $client = [Net.Http.HttpClient]::new((Get-HotsetHandler $Session))
        # Each request has its own.
        $client.Timeout = [Threading.Timeout]::InfiniteTimeSpan
        $script:Clients[$key] = $client
    }
    $message = [Net.Http.HttpRequestMessage]::new($Method.ToUpperInvariant(), $Uri)
    $token = [Net.NetworkCredential]::new('', $Session.Token).Password
    $message.Headers.Authorization = [Net.Http.Headers.AuthenticationHeaderValue]::new('Bearer', $token)
    if ($Body) { $message.Content = [Net.Http.StringContent]::new($Body, [Text.Encoding]::UTF8, 'application/json') }
    $limit = [Threading.CancellationTokenSource]::new([timespan]::FromSeconds($TimeoutSeconds))
    try {
        $sending = $client.SendAsync($message, $limit.Token)
        # Ctrl-C is heard between two of these. A task that failed is looked at, and throws nothing.
        while ([Threading.Tasks.Task]::WaitAny(@($sending), 200) -lt 0) { continue }
        if ($limit.IsCancellationRequested) { return @{ Failed = [TimeoutException]::new() } }
        if ($sending.IsFaulted) { return @{ Failed = $sending.Exception } }
        # JSON without a charset is UTF-8.
        $bytes = $sending.Result.Content.ReadAsByteArrayAsync().Result
        @{ Status = [int] $sending.Result.StatusCode; Text = [Text.Encoding]::UTF8.GetString($bytes) }
    } finally {
        $limit.Cancel()
        $message.Dispose()
    }
}

# How a server is connected to: nothing of it is the whole process's.
function Get-HotsetHandler {
    param([psobject] $Session)
    $handler = [Net.Http.HttpClientHandler]::new()
    $handler.AllowAutoRedirect = $false
    # Only the one that was asked for, whatever HTTP_PROXY and the system name. http:// is this computer,
    # and a proxy would read the token.
    $handler.UseProxy = [bool] $Session.Proxy -and $Session.Uri -notlike 'http://*'
    if ($handler.UseProxy) { $handler.Proxy = [Net.WebProxy]::new([uri] $Session.Proxy) }
    # Windows PowerShell may offer older ones only.
    if ($PSVersionTable.PSEdition -ne 'Core') { $handler.SslProtocols = 'Tls12' }
    if ($Session.SkipCertificateCheck -or $Session.Thumbprint) {
        # It is called on a thread without PowerShell, so that it cannot be a script block.
        $tree = [Linq.Expressions.Expression]
        $check = $handler.GetType().GetProperty('ServerCertificateCustomValidationCallback').PropertyType
        $parameters = foreach ($type in $check.GenericTypeArguments[0..3]) { $tree::Parameter($type) }
        $accept = $tree::Constant($true)
        if ($Session.Thumbprint) {
            # The SHA-256 of its bytes, as in 2C-26-B4: also .NET Framework 4.7 has all of this.
            $hash = $tree::Call($tree::Call([Security.Cryptography.SHA256].GetMethod('Create', [type[]] @())),
                [Security.Cryptography.HashAlgorithm].GetMethod('ComputeHash', [type[]] @([byte[]])),
                [Linq.Expressions.Expression[]] @($tree::Call($parameters[1],
                        [Security.Cryptography.X509Certificates.X509Certificate].GetMethod('GetRawCertData'))))
            $text = $tree::Call([BitConverter].GetMethod('ToString', [type[]] @([byte[]])), [Linq.Expressions.Expression[]] @($hash))
            $accept = $tree::Equal($text, $tree::Constant([string] $Session.Thumbprint))
        }
        $handler.ServerCertificateCustomValidationCallback = $tree::Lambda($check, $accept, [Linq.Expressions.ParameterExpression[]] $parameters).Compile()
    }
    $handler
}

# The names of the items that a cmdlet asks for one by one; null, which asks for all, where there
# are none. Texts, and objects that have one under the parameter's name: what another cmdlet of
# hotset found, a row of a table, a file. Anything else is refused: it is no name, and its text is
# none either.
function Select-HotsetItem {
    param([System.Management.Automation.PSCmdlet] $Caller, [string] $Parameter, [object[]] $Item)
    if ($null -eq $Item) { return $null }
    foreach ($one in $Item) {
        # A connection by the pipeline names a server, and nothing on it.
        if ('Hotset.Connection' -in $one.PSObject.TypeNames) {
            $needed = $Caller.MyInvocation.MyCommand.Parameters[$Parameter].Attributes
            if (-not @($needed | Where-Object { $_.Mandatory }).Count) { return $null }
        }
        Assert-HotsetPlace $Caller $Caller.MyInvocation.BoundParameters['Connection'] $one
        $name = if ($Parameter -eq 'Dsn') { ConvertTo-HotsetDsn $Caller $one } else { Get-HotsetItemName $Parameter $one }
        if ($name) {
            $name
            continue
        }
        Write-HotsetUnfit $Caller $Parameter $one "a text, or an object with the property $Parameter" $Caller.MyInvocation.ExpectingInput
    }
}

# The name that a text or an object has for a parameter; nothing if it has none.
function Get-HotsetItemName {
    param([string] $Parameter, $From)
    if ($From -is [System.IO.FileSystemInfo] -and $Parameter -in 'File', 'Folder', 'Trace') { return $From.FullName }
    # A process has an Id, too.
    if ($From -is [System.Management.Automation.PSCustomObject]) { $From = $From.$Parameter }
    if ($From -is [string] -or $From -is [int] -or $From -is [long]) { [string] $From }
}

# The values that were given; a switch becomes true.
function Select-HotsetValue {
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

# Values as a query string; a list repeats its name.
function ConvertTo-HotsetQuery {
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

# What a question names: the thing, the server it is on, and the machine if it is another.
function Get-HotsetSubject {
    param([object[]] $Connection, [string] $Name, [string] $Machine)
    $sessions = if ($Connection) { $Connection | ForEach-Object { Find-HotsetSession $_ } } else { $script:Sessions | Select-Object -Last 1 }
    $where = @($sessions | ForEach-Object { $_.Server }) -join ', '
    if ($Machine) { $where = "$Machine, by $where" }
    @($Name, $where | Where-Object { $_ }) -join ' on '
}
