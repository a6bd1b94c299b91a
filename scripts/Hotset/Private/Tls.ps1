# What Windows PowerShell 5.1 has to be told about TLS, for the whole process.

function Enable-HotsetTls {
    <#
    .SYNOPSIS
    Adds TLS 1.2 to what the process offers; on wish accepts any certificate of one server.
    #>
    param([uri] $Uri, [bool] $SkipCertificateCheck)
    $protocols = [Net.ServicePointManager]::SecurityProtocol
    [Net.ServicePointManager]::SecurityProtocol = $protocols -bor [Net.SecurityProtocolType]::Tls12
    if (-not $SkipCertificateCheck) { return }
    if (-not ('HotsetCertificates' -as [type])) {
        # The check runs on a thread without PowerShell, so that it cannot be a script block.
        Add-Type -TypeDefinition @'
using System.Collections.Generic;
using System.Net;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

public static class HotsetCertificates
{
    static readonly HashSet<string> accepted = new HashSet<string>();

    public static void Accept(string authority)
    {
        accepted.Add(authority);
        ServicePointManager.ServerCertificateValidationCallback = Check;
    }

    static bool Check(object sender, X509Certificate certificate, X509Chain chain, SslPolicyErrors errors)
    {
        var request = sender as HttpWebRequest;
        return errors == SslPolicyErrors.None
            || (request != null && accepted.Contains(request.RequestUri.Authority));
    }
}
'@
    }
    [HotsetCertificates]::Accept($Uri.Authority)
}
