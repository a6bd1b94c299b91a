# Databases: who logs in where, and what an object of another module means.

function Resolve-HotsetLogin {
    <#
    .SYNOPSIS
    A database's address with the user in it, the password apart from it, and its product.
    #>
    param(
        [System.Management.Automation.PSCmdlet] $Caller,
        [string] $Dsn,
        [pscredential] $Credential,
        [string] $Engine
    )
    $ErrorActionPreference = 'Stop'
    if (-not $Engine -and $Dsn -like 'sqlserver://*') { $Engine = 'sqlserver' }
    if (-not $Engine -and $Dsn -match '^postgres(ql)?://') { $Engine = 'postgres' }
    $login = @{ Dsn = $Dsn; Password = $null; Engine = $Engine }
    if ($Dsn -match '^[a-z]+://[^/@]*:[^/@]*@' -or $Dsn -match '(^|[\s?&;])(password|pwd)\s*=') {
        $Caller.ThrowTerminatingError((Get-HotsetErrorRecord 'PasswordInDsn' 'InvalidArgument' `
            '-Dsn holds a password: leave it out and give it by -Credential.'))
    }
    if ($null -eq $Credential -or -not $Credential.UserName) { return $login }
    $login.Password = $Credential.GetNetworkCredential().Password
    $user = [uri]::EscapeDataString($Credential.UserName)
    if ($Dsn -notlike '*://*') {
        $Caller.ThrowTerminatingError((Get-HotsetErrorRecord 'BadDsn' 'InvalidArgument' `
            "-Dsn $($Dsn): write an address, such as sqlserver://db1/shop, to which -Credential adds the user."))
    }
    if ($Dsn -match '^[a-z]+://(?<user>[^/@]+)@') {
        if ($Matches['user'] -ne $user) {
            $Caller.ThrowTerminatingError((Get-HotsetErrorRecord 'TwoUsers' 'InvalidArgument' `
                "-Dsn names user $($Matches['user']) and -Credential names $($user): name one."))
        }
    } else {
        $login.Dsn = $Dsn -replace '://@?', "://$($user)@"
    }
    $login
}

function ConvertTo-HotsetTarget {
    <#
    .SYNOPSIS
    What to cache, from a text or an object.
    .DESCRIPTION
    An object with SqlInstance and Name is a database, as Get-DbaDatabase returns it; one with Target
    is what another cmdlet of hotset listed, one with Run a run.
    #>
    param($From)
    if ($From -is [string]) { return $From }
    if ($From.Target) { return [string] $From.Target }
    if ($From.SqlInstance -and $From.Name) { return "database:$($From.Name)" }
    if ($From.FullName) { return [string] $From.FullName }
    [string] $From
}

function Get-HotsetInstance {
    <#
    .SYNOPSIS
    What -Dsn is; without it the address of the instance that objects of dbatools are from.
    .DESCRIPTION
    One request has one instance: databases of several are refused. A named instance listens at a
    port of its own, which the object does not tell: -Dsn names it. A certificate that the object's
    own connection takes unseen, hotset takes unseen.
    #>
    param(
        [System.Management.Automation.PSCmdlet] $Caller,
        [string] $Dsn,
        [object[]] $From
    )
    if ($Dsn) { return $Dsn }
    $known = @($From | Where-Object { $_ -isnot [string] -and $_.SqlInstance -and $_.Name })
    if (-not $known.Count) { return }
    $instance = [string] $known[0].SqlInstance
    $others = @($known | Where-Object { [string] $_.SqlInstance -ne $instance })
    if ($others.Count) {
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'SeveralInstances' 'InvalidArgument' `
            "The databases are on $instance and on $($others[0].SqlInstance): one call for each instance.")
    }
    if ($instance -match '^(?<host>[^\\,:]+)([,:](?<port>\d+))?$') {
        $port = ''
        if ($Matches['port']) { $port = ":$($Matches['port'])" }
        $options = ''
        if ($known[0].Parent.ConnectionContext.TrustServerCertificate) { $options = '?trust=yes' }
        return "sqlserver://$($Matches['host'])$port/$([uri]::EscapeDataString([string] $known[0].Name))$options"
    }
    Write-Warning "$($instance): a named instance has a port of its own: name it by -Dsn."
}
