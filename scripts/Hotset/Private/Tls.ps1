# What Windows PowerShell 5.1 has to be told about TLS, for the whole process.

function Enable-HotsetTls {
    <#
    .SYNOPSIS
    Adds TLS 1.2 to what the process offers; on wish accepts any certificate of one server,
    until it is connected to again without that.
    #>
    param([uri] $Uri, [bool] $SkipCertificateCheck)
    $protocols = [Net.ServicePointManager]::SecurityProtocol
    # 0: what Windows offers, which has TLS 1.2 and may have 1.3.
    if ([int] $protocols -ne 0) {
        [Net.ServicePointManager]::SecurityProtocol = $protocols -bor [Net.SecurityProtocolType]::Tls12
    }
    if (-not ('HotsetCertificates' -as [type])) {
        if (-not $SkipCertificateCheck) { return }
        # The check runs on a thread without PowerShell, so that it cannot be a script block.
        Add-Type -TypeDefinition @'
using System.Collections.Generic;
using System.Net;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

public static class HotsetCertificates
{
    static readonly List<string> accepted = new List<string>();

    public static void Accept(string authority, bool any)
    {
        lock (accepted)
        {
            accepted.Remove(authority);
            if (any) accepted.Add(authority);
        }
        ServicePointManager.ServerCertificateValidationCallback = Check;
    }

    static bool Check(object sender, X509Certificate certificate, X509Chain chain, SslPolicyErrors errors)
    {
        var request = sender as HttpWebRequest;
        if (errors == SslPolicyErrors.None) return true;
        lock (accepted)
        {
            return request != null && accepted.Contains(request.RequestUri.Authority);
        }
    }
}
'@
    }
    [HotsetCertificates]::Accept($Uri.Authority, $SkipCertificateCheck)
}
