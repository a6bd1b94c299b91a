# Failures as ErrorRecords, in the words of PowerShell.

# An ErrorRecord with an id such as Hotset.NotConnected.
function Get-HotsetErrorRecord {
    param([string] $Id, [System.Management.Automation.ErrorCategory] $Category, [string] $Message, $Target = $null)
    $exception = New-Object System.InvalidOperationException $Message
    New-Object System.Management.Automation.ErrorRecord $exception, "Hotset.$Id", $Category, $Target
}

# Ends the cmdlet that was called with an error, or writes the error and goes on. What is missing,
# and an error of one item or server among several, is written: the others are done. What concerns
# the whole call ends it. $ErrorActionPreference is asked of the caller's own session: a module does
# not see a script's preferences.
function Write-HotsetFailure {
    param(
        [System.Management.Automation.PSCmdlet] $Caller, [System.Management.Automation.ErrorRecord] $Failure,
        [bool] $GoOn = $false
    )
    $isMissing = $Failure.FullyQualifiedErrorId -match '^Hotset\.(Http404|UnknownDisk)'
    $given = $Caller.MyInvocation.BoundParameters.ContainsKey('ErrorAction')
    $preference = [string] $Caller.SessionState.PSVariable.GetValue('ErrorActionPreference')
    $stops = $preference -eq 'Stop' -and -not $given
    if (($GoOn -or $isMissing) -and -not $stops) {
        $Caller.WriteError($Failure)
        return
    }
    $ErrorActionPreference = 'Stop'
    $Caller.ThrowTerminatingError($Failure)
}

# The error of an object that a parameter cannot take.
function Write-HotsetUnfit {
    param([System.Management.Automation.PSCmdlet] $Caller, [string] $Parameter, $From, [string] $Wanted, [bool] $GoOn = $false)
    Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'NotOfThisKind' 'InvalidType' `
            "-$($Parameter): an object of type $($From.PSObject.TypeNames[0]) does not fit: give $Wanted." $From) $GoOn
}

# A failure that names its server, where several were asked.
function Add-HotsetPlace {
    param([System.Management.Automation.ErrorRecord] $Failure, [psobject] $Session, [object[]] $Asked)
    if (@($Asked).Count -lt 2 -or $Failure.Exception.Message.Contains($Session.Server)) { return $Failure }
    $id = $Failure.FullyQualifiedErrorId.Split(',')[0] -replace '^Hotset\.'
    Get-HotsetErrorRecord $id $Failure.CategoryInfo.Category "$($Session.Server): $($Failure.Exception.Message)" $Failure.TargetObject
}

# The ErrorRecord of an answer that is a failure, in the server's words. The record's target is the
# server's problem: Type, Title, Status, Detail, Message, ExitCode, Field, Remedies.
function ConvertTo-HotsetError {
    param([hashtable] $Answer, [psobject] $Session)
    $status = $Answer.Status
    $problem = ConvertFrom-HotsetJson $Answer.Text
    if ([string] $problem.type -notlike 'urn:hotset:*') {
        return Get-HotsetStranger $Session "it answered $status"
    }
    $category = switch ($status) {
        400 { 'InvalidArgument' }
        401 { 'AuthenticationError' }
        403 { 'PermissionDenied' }
        404 { 'ObjectNotFound' }
        409 { 'ResourceBusy' }
        422 { 'InvalidArgument' }
        424 { 'ResourceUnavailable' }
        503 { 'ResourceUnavailable' }
        default { 'InvalidOperation' }
    }
    $target = ConvertTo-HotsetObject $problem 'Hotset.Problem' $Session.Server
    # Of what is not found hotset says more: this path is not there at all.
    if ($status -eq 404 -and -not $problem.message) {
        return Get-HotsetErrorRecord 'NotServed' 'NotImplemented' `
            "$($Session.Server) cannot do this: it has another version of hotset than this module. $($Session.Uri)/powershell/Hotset.zip is the module of that server." $target
    }
    $id, $category = Get-HotsetCause $problem "Http$status" $category
    Get-HotsetErrorRecord $id $category (Format-HotsetProblem $problem) $target
}

# Causes that scripts tell apart, whether a request or a job has met them, and their categories.
$script:Causes = @{
    'log-in'           = 'LogIn', 'AuthenticationError'
    'not-installed'    = 'NotInstalled', 'NotInstalled'
    'not-loaded'       = 'NotLoaded', 'ResourceUnavailable'
    'unknown-database' = 'UnknownDatabase', 'ObjectNotFound'
    'unknown-disk'     = 'UnknownDisk', 'ObjectNotFound'
}

# The id and the category of a problem; those that are given of any other cause.
function Get-HotsetCause {
    param($Problem, [string] $Id, [string] $Category)
    $known = $script:Causes[([string] $Problem.type) -replace '^urn:hotset:']
    if ($known) { $known } else { $Id, $Category }
}

# The error of a server that did not answer, with the innermost cause.
function Get-HotsetUnreached {
    param([System.Exception] $Exception, [psobject] $Session, [int] $TimeoutSeconds)
    $isTrust = $isLate = $isCut = $false
    $cause = $Exception
    for ($one = $Exception; $null -ne $one; $one = $one.InnerException) {
        $cause = $one
        if ($one -is [System.Security.Authentication.AuthenticationException]) { $isTrust = $true }
        if ($one -is [System.TimeoutException]) { $isLate = $true }
        if ($one -is [System.IO.IOException]) { $isCut = $true }
    }
    $uri = $Session.Uri
    if ($isLate) { return Get-HotsetErrorRecord 'NotReached' 'ConnectionError' "$uri gave no whole answer within $TimeoutSeconds s." $Session.Server }
    $said = "$($cause.Message.TrimEnd('.'))."
    if ($said -match 'frame size|corrupted frame|packet format|wrong version number') {
        return Get-HotsetErrorRecord 'NotEncrypted' 'ConnectionError' `
            "$uri was reached, but nothing there speaks TLS: is this the port of another program, or does the console listen without a certificate? An SSH tunnel reaches it then: http://localhost." $Session.Server
    }
    if ($said -match 'NameMismatch') {
        return Get-HotsetErrorRecord 'OtherName' 'SecurityError' `
            "$uri was reached, but its certificate is for another name: $said Connect to a name that is in it, or give -Thumbprint with the certificate's SHA-256, which the console prints when it starts." $Session.Server
    }
    if ($isTrust) {
        return Get-HotsetErrorRecord 'Untrusted' 'SecurityError' `
            "$uri was reached, but its certificate is not trusted: $said Import the certificate into the trusted roots of this computer, or give -Thumbprint with its SHA-256, which the console prints when it starts. With -SkipCertificateCheck whoever answers there gets the token." $Session.Server
    }
    $how = if ($isCut) { 'broke the connection off' } else { 'was not reached' }
    Get-HotsetErrorRecord 'NotReached' 'ConnectionError' "$uri $($how): $said" $Session.Server
}

# The error of another program behind the address.
function Get-HotsetStranger {
    param([psobject] $Session, [string] $Said)
    $message = "No hotset server answers at $($Session.Uri): $Said, but not as hotset does."
    Get-HotsetErrorRecord 'NotHotset' 'ConnectionError' "$message Is this the address of a hotset console?" $Session.Server
}

# What a text of JSON says; nothing where it is no object, or is cut off, which leaves no error of its
# own beside the one that is reported.
function ConvertFrom-HotsetJson {
    param([string] $Text)
    if ($Text -notmatch '(?s)^\s*\{.*\}\s*\z') { return }
    try {
        ConvertFrom-Json $Text
    } catch {
        $global:Error.RemoveAt(0)
    }
}

# What is wrong, about which parameter, and the cmdlets that help.
function Format-HotsetProblem {
    param($Problem)
    $parts = @()
    if ($Problem.message) {
        $said = $Problem.message
        if ($Problem.field -match '^[a-z_]+$') {
            $said = "-$(ConvertTo-HotsetParameter $Problem.field): $said"
        }
        $parts += $said
        foreach ($remedy in $Problem.remedies) {
            if ($remedy) { $parts += "to $($remedy.purpose): $(Format-HotsetRemedy $remedy)" }
        }
    } elseif ($Problem.detail) {
        $parts += $Problem.detail
    } else {
        $parts += $Problem.title
    }
    $parts -join '; '
}

# What helps, as something to type here.
function Format-HotsetRemedy {
    param($Remedy)
    $words = @()
    if ($null -ne $Remedy.parameters) {
        foreach ($one in $Remedy.parameters.PSObject.Properties) {
            $name = ConvertTo-HotsetParameter $one.Name
            if ($one.Name -eq 'yes') {
                $words += '-Force or -Confirm:$false'
            } elseif ($one.Value -is [bool]) {
                $words += "-$name"
            } else {
                $words += "-$name $($one.Value)"
            }
        }
    }
    if (-not $Remedy.operation) { return "add $($words -join ' ')" }
    $cmdlet = $script:Operations[$Remedy.operation].Cmdlet
    if (-not $cmdlet) { return """hotset $($Remedy.operation)"" on the server" }
    "$cmdlet $($words -join ' ')".TrimEnd()
}

# The parameter that stands for a field of a request.
function ConvertTo-HotsetParameter {
    param([string] $Field)
    $name = $script:ParameterNames[$Field]
    if (-not $name) { $name = (Get-HotsetName $Field).Shown }
    $name
}
