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
    $request = @{
        Method             = $Method
        Uri                = "$($Session.Uri)$Path"
        Headers            = Get-HotsetHeader $Session
        UseBasicParsing    = $true
        MaximumRedirection = 0
        TimeoutSec         = $TimeoutSeconds
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
    if ($Session.SkipCertificateCheck -and $PSVersionTable.PSEdition -eq 'Core') {
        $request.SkipCertificateCheck = $true
    }
    # http:// is this computer, and a proxy would read the token. Windows PowerShell asks none there.
    if ($Session.Uri -like 'http://*' -and $PSVersionTable.PSEdition -eq 'Core') {
        $request.NoProxy = $true
    }
    Write-Verbose "$($Method.ToUpperInvariant()) $($request.Uri)"
    $ProgressPreference = 'SilentlyContinue'
    try {
        $response = Invoke-WebRequest @request
    } catch {
        throw (ConvertTo-HotsetError $_ $Session $TimeoutSeconds)
    }
    if ($null -eq $response.RawContentStream) { return }
    # Windows PowerShell takes JSON without a charset for Latin-1; it is always UTF-8.
    $text = [Text.Encoding]::UTF8.GetString($response.RawContentStream.ToArray())
    if ($Raw) { return $text }
    if (-not $text) { return }
    try {
        ConvertFrom-Json $text
    } catch {
        throw (Get-HotsetStranger $Session 'it answered with something that is not JSON')
    }
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

function Get-HotsetHeader {
    <#
    .SYNOPSIS
    The header with the token, which is in plain only here and for one request.
    #>
    param([hashtable] $Session)
    $token = (New-Object System.Net.NetworkCredential '', $Session.Token).Password
    @{ Authorization = "Bearer $token" }
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
