# The API's JSON as objects: PascalCase names, ratios as doubles, bytes as longs, times as DateTime.

function ConvertTo-HotsetObject {
    <#
    .SYNOPSIS
    An object of the API under a type's name; hit_ratio becomes HitRatio.
    #>
    param($InputObject, [string] $TypeName)
    if ($null -eq $InputObject) { return }
    $properties = [ordered] @{}
    foreach ($property in $InputObject.PSObject.Properties) {
        $words = foreach ($word in $property.Name.Split('_')) {
            if ($word) { $word.Substring(0, 1).ToUpperInvariant() + $word.Substring(1) }
        }
        $properties[-join $words] = ConvertTo-HotsetValue $property.Name $property.Value
    }
    $object = [pscustomobject] $properties
    if ($TypeName) { $object.PSObject.TypeNames.Insert(0, $TypeName) }
    $object
}

function ConvertTo-HotsetValue {
    <#
    .SYNOPSIS
    A value of the API by its own type and its name.
    .DESCRIPTION
    The two editions read JSON differently: a number with a point is a Decimal in one and a Double
    in the other, a time a string or a DateTime. Here both become the same.
    #>
    param([string] $Name, $Value)
    if ($null -eq $Value -or $Value -is [bool]) { return $Value }
    if ($Value -is [array]) {
        return , @(foreach ($one in $Value) { ConvertTo-HotsetValue $Name $one })
    }
    if ($Value -is [System.Management.Automation.PSCustomObject]) {
        return ConvertTo-HotsetObject $Value
    }
    if ($Value -is [datetime]) { return $Value.ToLocalTime() }
    if ($Value -is [string]) {
        if ($Value -notmatch '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$') { return $Value }
        return [datetimeoffset]::Parse($Value, [cultureinfo]::InvariantCulture).LocalDateTime
    }
    # Seconds since 1970; a smaller number under such a name is seconds since a beginning.
    if ($Name -match '^(at|begun|started|ended|window_(start|end)|.*_at)$' -and $Value -gt 1e9) {
        return [datetimeoffset]::FromUnixTimeMilliseconds([long] (1000 * $Value)).LocalDateTime
    }
    if ($Value -is [decimal] -or $Value -is [double]) { return [double] $Value }
    # A ratio of 1 is no whole number.
    if ($Name -match '(^|_)(ratio|share|factor|nopm|tpm|s|ms|seconds)(_|$)') { return [double] $Value }
    [long] $Value
}
