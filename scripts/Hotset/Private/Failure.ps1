# Failures as ErrorRecords.

function New-HotsetError {
    <#
    .SYNOPSIS
    An ErrorRecord with an id such as Hotset.NotConnected.
    #>
    param(
        [string] $Id,
        [System.Management.Automation.ErrorCategory] $Category,
        [string] $Message,
        $Target = $null
    )
    $exception = New-Object System.InvalidOperationException $Message
    New-Object System.Management.Automation.ErrorRecord $exception, "Hotset.$Id", $Category, $Target
}

function ConvertTo-HotsetError {
    <#
    .SYNOPSIS
    The ErrorRecord of a request that failed: what the server said, or that it was not reached.
    .DESCRIPTION
    The record's target is the server's problem: Type, Title, Status, Detail, ExitCode, Field.
    #>
    param([System.Management.Automation.ErrorRecord] $Failure)
    $response = $Failure.Exception.Response
    if ($null -eq $response) {
        return New-HotsetError 'NotReached' 'ConnectionError' `
            "$($script:Connection.Uri) was not reached: $($Failure.Exception.Message)"
    }
    $status = [int] $response.StatusCode
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
    $problem = $null
    if ($Failure.ErrorDetails) {
        try { $problem = ConvertFrom-Json $Failure.ErrorDetails.Message } catch { $problem = $null }
    }
    $message = "The server answered $status."
    if ($problem.detail) { $message = $problem.detail } elseif ($problem.title) { $message = $problem.title }
    if ($problem) { $problem = ConvertTo-HotsetObject $problem 'Hotset.Problem' }
    New-HotsetError "Http$status" $category $message $problem
}
