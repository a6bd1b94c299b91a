# Databases: who logs in where, and what an object of another module means.

# A database's address with the user in it, the password apart from it, and its product.
function Resolve-HotsetLogin {
    param([System.Management.Automation.PSCmdlet] $Caller, $Dsn, [pscredential] $Credential, [string] $Engine)
    $Dsn = ConvertTo-HotsetDsn $Caller $Dsn
    if (-not $Engine -and $Dsn -like 'sqlserver://*') { $Engine = 'sqlserver' }
    if (-not $Engine -and $Dsn -match '^postgres(ql)?://') { $Engine = 'postgres' }
    $login = @{ Dsn = $Dsn; Password = $null; Engine = $Engine }
    if ($Dsn -match '^[a-z]+://[^/@]*:[^/@]*@' -or $Dsn -match '(^|[\s?&;])(password|pwd)\s*=') {
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'PasswordInDsn' 'InvalidArgument' `
                '-Dsn holds a password: leave it out and give it by -Credential.')
    }
    if ($null -eq $Credential -or -not $Credential.UserName) { return $login }
    $login.Password = $Credential.GetNetworkCredential().Password
    $user = [uri]::EscapeDataString($Credential.UserName)
    if ($Dsn -notlike '*://*') {
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'BadDsn' 'InvalidArgument' `
                "-Dsn $($Dsn): write an address, such as sqlserver://db1/shop, to which -Credential adds the user.")
    }
    if ($Dsn -match '^[a-z]+://(?<user>[^/@]+)@') {
        if ($Matches['user'] -ne $user) {
            Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'TwoUsers' 'InvalidArgument' `
                    "-Dsn names user $($Matches['user']) and -Credential names $($user): name one.")
        }
    } else {
        $login.Dsn = $Dsn -replace '://@?', "://$($user)@"
    }
    $login
}

# What to cache, or the run to compare, from a text or an object; nothing from one that names none.
# An object with SqlInstance and Name is a database, as Get-DbaDatabase returns it; one with Target
# is what another cmdlet of hotset listed, one with Run a run.
function ConvertTo-HotsetTarget {
    param([System.Management.Automation.PSCmdlet] $Caller, [string] $Parameter, $From)
    # A file may have a Target as well, and other objects a method of this name.
    if ($From -is [System.IO.FileSystemInfo]) { return $From.FullName }
    foreach ($named in $From, $From.Target, $From.Run) { if ($named -and $named -is [string]) { return $named } }
    if ($From.SqlInstance -and $From.Name) { return "database:$($From.Name)" }
    Write-HotsetUnfit $Caller $Parameter $From 'a text, or what another cmdlet of hotset or Get-DbaDatabase returned' $Caller.MyInvocation.ExpectingInput
}

# What -Dsn is; without it the address of the instance that objects of dbatools are from. One
# request has one instance: databases of several are refused.
function Get-HotsetInstance {
    param([System.Management.Automation.PSCmdlet] $Caller, $Dsn, [object[]] $From)
    if ($Dsn) { return $Dsn }
    $known = @($From | Where-Object { $_ -isnot [string] -and $_.SqlInstance -and $_.Name })
    if (-not $known.Count) { return }
    $instance = [string] $known[0].SqlInstance
    $others = @($known | Where-Object { [string] $_.SqlInstance -ne $instance })
    if ($others.Count) {
        Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'SeveralInstances' 'InvalidArgument' `
            "The databases are on $instance and on $($others[0].SqlInstance): one call for each instance.")
    }
    $known[0]
}

# A database's address from a text, or from an instance or a database of dbatools. A name without a
# scheme is an instance of SQL Server, as -SqlInstance means it. A named instance listens at a port
# of its own, which nothing here tells: -Dsn names it. A certificate that the object's own
# connection takes unseen, hotset takes unseen.
function ConvertTo-HotsetDsn {
    param([System.Management.Automation.PSCmdlet] $Caller, $From)
    if (-not $From -or ($From -is [string] -and $From -match '://|=')) { return [string] $From }
    $instance = [string] $From
    $name = ''
    if ($From -isnot [string]) {
        if ($From.Dsn) { return [string] $From.Dsn }
        $instance = [string] $From.SqlInstance
        if (-not $instance) { $instance = [string] $From.DomainInstanceName } elseif ($From.Name) { $name = [string] $From.Name }
        # DbaInstanceParameter, and what dbatools made of a text.
        if (-not $instance) { $instance = [string] $From.FullName }
    }
    $options = ''
    foreach ($one in $From.ConnectionContext, $From.Parent.ConnectionContext) {
        if ($one.TrustServerCertificate) { $options = '?trust=yes' }
    }
    if ($instance -match '^(?<host>[A-Za-z0-9_.-]+)([,:](?<port>\d+))?$') {
        $port = ''
        if ($Matches['port']) { $port = ":$($Matches['port'])" }
        return "sqlserver://$($Matches['host'])$port/$([uri]::EscapeDataString($name))$options"
    }
    $why = 'give the address of a database, such as sqlserver://db1/shop or postgresql://db1/shop, or an object of dbatools.'
    if ($instance -match '^[^\\]+\\[^\\]+$') {
        $why = "a named instance has a port of its own: write sqlserver://$($instance.Split('\')[0]):PORT/DATABASE."
    }
    Write-HotsetFailure $Caller (Get-HotsetErrorRecord 'BadDsn' 'InvalidArgument' "-Dsn $($From): $why" $From)
}
