# Generated from the table of operations: run `make docs`.

function Get-HotsetAudit {
    <#
    .SYNOPSIS
    Show who changed what, when, from where, and the outcome; newest first.
    .DESCRIPTION
    It records every call that may change something, from the command line, the API and the console,
    and also log-ins, tokens, and what a known caller was refused. Requests of unknown callers are
    only counted: -Unknown shows the counts.

    The token needs the right 'admin'. On the server's own command line this is "hotset audit".
    .PARAMETER Limit
    How many entries to show. Default: 50.
    .PARAMETER Unknown
    Instead show how many requests without a valid token, and how many failed log-ins, came from
    each address in each minute.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Audit
    .EXAMPLE
    Get-HotsetAudit
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Audit')]
    param(
        [ValidateRange(1, 10000)]
        [Nullable[int]] $Limit,

        [switch] $Unknown,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'audit' -Values @{
            limit   = $Limit
            unknown = $Unknown
        }
    }
}

function Clear-HotsetDatabaseCache {
    <#
    .SYNOPSIS
    Empty the server's buffers, so that the next run reads from the disk.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    With -WhatIf the server says what it would do, and that is returned as text.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'operate'. On the server's own command line this is "hotset database
    clear-cache".
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Clear-HotsetDatabaseCache sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Empty the server''s buffers, so that the next run reads from the disk')
        if (-not $go -and -not $WhatIfPreference) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'database clear-cache' -AsJob $AsJob.IsPresent -Values @{
            engine   = $login.Engine
            dsn      = $login.Dsn
            password = $login.Password
            yes      = $go
            dry_run  = -not $go
        }
    }
}

function Measure-HotsetDatabase {
    <#
    .SYNOPSIS
    Show I/O per file, waits and performance counters during an interval.
    .DESCRIPTION
    The token needs the right 'operate'. On the server's own command line this is "hotset database
    counters".
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER IntervalSeconds
    Seconds between the two readings. 0: everything since the server started. Default: 10.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.DatabaseCounters
    .EXAMPLE
    Measure-HotsetDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.DatabaseCounters')]
    param(
        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateRange(0.0, 600.0)]
        [Nullable[double]] $IntervalSeconds,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        Invoke-HotsetQuery $PSCmdlet $Connection 'database counters' -Values @{
            engine   = $login.Engine
            dsn      = $login.Dsn
            password = $login.Password
            interval = $IntervalSeconds
        }
    }
}

function Set-HotsetDatabaseMemory {
    <#
    .SYNOPSIS
    Limit the server's memory.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    With -WhatIf the server says what it would do, and that is returned as text.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset database
    memory".
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Size
    The limit; 75 % of the machine's memory if left out (SQL Server).
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Set-HotsetDatabaseMemory sqlserver://db1/master -Credential sa -Size 8GiB -WhatIf

    Shows the statements that would run, without running them.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [string] $Size,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Limit the server''s memory')
        if (-not $go -and -not $WhatIfPreference) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'database memory' -AsJob $AsJob.IsPresent -Values @{
            engine   = $login.Engine
            dsn      = $login.Dsn
            password = $login.Password
            size     = $Size
            yes      = $go
            dry_run  = -not $go
        }
    }
}

function Move-HotsetDatabaseFile {
    <#
    .SYNOPSIS
    Move temporary space (tempdb) and the log to a folder.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    With -WhatIf the server says what it would do, and that is returned as text.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset database
    place".
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Folder
    A folder on the server's machine, on the flash volume.
    .PARAMETER Log
    Move the database's log as well.
    .PARAMETER LogSize
    Size of the log, such as 30GiB; its files then grow by 10 %.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Move-HotsetDatabaseFile sqlserver://db1/shop -Credential sa -Folder F:\tempdb
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Folder,

        [switch] $Log,

        [string] $LogSize,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Move temporary space (tempdb) and the log to a folder')
        if (-not $go -and -not $WhatIfPreference) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'database place' -AsJob $AsJob.IsPresent -Values @{
            engine   = $login.Engine
            dsn      = $login.Dsn
            password = $login.Password
            folder   = $Folder
            log      = $Log
            log_size = $LogSize
            yes      = $go
            dry_run  = -not $go
        }
    }
}

function Get-HotsetDatabase {
    <#
    .SYNOPSIS
    Show the version, the memory, and where the files of each database are.
    .DESCRIPTION
    The token needs the right 'operate'. On the server's own command line this is "hotset database
    show".
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Database
    .EXAMPLE
    Get-HotsetDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Database')]
    param(
        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        Invoke-HotsetQuery $PSCmdlet $Connection 'database show' -Values @{
            engine   = $login.Engine
            dsn      = $login.Dsn
            password = $login.Password
        }
    }
}

function Update-HotsetDatabaseStatistic {
    <#
    .SYNOPSIS
    Update the planner's statistics of the database's tables, as after a load.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    With -WhatIf the server says what it would do, and that is returned as text.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'operate'. On the server's own command line this is "hotset database
    statistics".
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Update-HotsetDatabaseStatistic sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Update the planner''s statistics of the database''s tables, as after a load')
        if (-not $go -and -not $WhatIfPreference) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'database statistics' -AsJob $AsJob.IsPresent -Values @{
            engine   = $login.Engine
            dsn      = $login.Dsn
            password = $login.Password
            yes      = $go
            dry_run  = -not $go
        }
    }
}

function Invoke-HotsetDemo {
    <#
    .SYNOPSIS
    Run the demonstration that comes with hotset (experiments/demo.toml).
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset demo".
    .PARAMETER Set
    Replace a value of the experiment file, for instance tpcc.users=32.
    .PARAMETER Resume
    Resume a failed or interrupted run (id or 'last').
    .PARAMETER Threshold
    Exit with code 5 unless this holds, such as 'factor>=5' or 'p95(accelerated)<20ms'; in addition
    to those in the file.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.RunDocument. With -AsJob Hotset.Job.
    .EXAMPLE
    Invoke-HotsetDemo
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.RunDocument', 'Hotset.Job')]
    param(
        [string[]] $Set,

        [string] $Resume,

        [string[]] $Threshold,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Run the demonstration that comes with hotset (experiments/demo.toml)')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'demo' -AsJob $AsJob.IsPresent -Values @{
            set       = $Set
            resume    = $Resume
            threshold = $Threshold
        }
    }
}

function Measure-HotsetArrayTest {
    <#
    .SYNOPSIS
    Measure models of a published test's arrays: eight hard disks, and six SSDs in their place.
    .DESCRIPTION
    The published table beside ours, a member that fails under load, a power cut with and without
    power-loss protection; with -Search a full-text search on each array.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset disk
    arrays".
    .PARAMETER Size
    Size of the test file. Default: 1GiB.
    .PARAMETER Seconds
    Seconds of each run. Default: 5.
    .PARAMETER Repeats
    How often each line is measured. Default: 5.
    .PARAMETER Search
    Also search forum posts on each array while new ones come in. Takes root, as the arrays are
    mounted.
    .PARAMETER Posts
    Posts in the index that is searched. Default: 500000.
    .PARAMETER Memory
    Memory of the search, with what it keeps of the index. Default: 128MiB.
    .PARAMETER SearchSeconds
    Seconds of the search on each array. Default: 20.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.ArrayTest. With -AsJob Hotset.Job.
    .EXAMPLE
    Measure-HotsetArrayTest
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.ArrayTest', 'Hotset.Job')]
    param(
        [string] $Size,

        [ValidateRange(0.5, 3600.0)]
        [Nullable[double]] $Seconds,

        [ValidateRange(1, 1000)]
        [Nullable[int]] $Repeats,

        [switch] $Search,

        [ValidateRange(1000, 100000000)]
        [Nullable[int]] $Posts,

        [string] $Memory,

        [ValidateRange(1.0, 3600.0)]
        [Nullable[double]] $SearchSeconds,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Measure models of a published test''s arrays: eight hard disks, and six SSDs in their place')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'disk arrays' -AsJob $AsJob.IsPresent -Values @{
            size           = $Size
            seconds        = $Seconds
            repeats        = $Repeats
            search         = $Search
            posts          = $Posts
            memory         = $Memory
            search_seconds = $SearchSeconds
        }
    }
}

function Measure-HotsetDiskSpeed {
    <#
    .SYNOPSIS
    Run the CrystalDiskMark profile with fio: sequential and random, read, write and 70/30.
    .DESCRIPTION
    It bypasses the page cache and shows the median of the runs.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset disk bench".
    .PARAMETER Target
    A file (created if it is missing) or a block device.
    .PARAMETER Model
    Measure a device model instead: its name or JSON file.
    .PARAMETER Size
    Size of the test file. Default: 1GiB.
    .PARAMETER Repeats
    How often each line is measured. Default: 5.
    .PARAMETER Seconds
    Seconds of each run. Default: 5.
    .PARAMETER ReadOnly
    Write nothing.
    .PARAMETER Force
    Allow overwriting existing data on a device.
    .PARAMETER Against
    A saved result, a JSON file on the hotset server, to compare with.
    .PARAMETER Threshold
    What the disk must reach, such as 'mb_per_s(seq1m-q8t1-read)>=500': the job fails if it does
    not.
    .PARAMETER Label
    What to call the measurement in the archive of runs, such as before: measurements of one label
    are compared together.
    .PARAMETER NoKeep
    Keep what was measured as a run in the archive.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.DiskSpeed. With -AsJob Hotset.Job.
    .EXAMPLE
    Measure-HotsetDiskSpeed
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('Hotset.DiskSpeed', 'Hotset.Job')]
    param(
        [Parameter(Position = 0)]
        [string] $Target,

        [string] $Model,

        [string] $Size,

        [ValidateRange(1, 1000)]
        [Nullable[int]] $Repeats,

        [ValidateRange(0.5, 3600.0)]
        [Nullable[double]] $Seconds,

        [switch] $ReadOnly,

        [switch] $Force,

        [string] $Against,

        [string[]] $Threshold,

        [string] $Label,

        [switch] $NoKeep,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection $Target
        $go = $PSCmdlet.ShouldProcess($what, 'Run the CrystalDiskMark profile with fio: sequential and random, read, write and 70/30')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'disk bench' -AsJob $AsJob.IsPresent -Values @{
            target    = $Target
            model     = $Model
            size      = $Size
            repeats   = $Repeats
            seconds   = $Seconds
            read_only = $ReadOnly
            yes       = $Force
            against   = $Against
            threshold = $Threshold
            label     = $Label
            keep      = -not $NoKeep
        }
    }
}

function Measure-HotsetDisk {
    <#
    .SYNOPSIS
    Measure the lab's slow disk with fio, and compare it with its model.
    .DESCRIPTION
    It measures through the whole chain, iSCSI included.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset disk
    calibrate".
    .PARAMETER Model
    A built-in model's name, or its JSON file. Default: nas-2014.
    .PARAMETER TimeScale
    Slow the model down by this factor. Default: 1.
    .PARAMETER Size
    Size of the disk. Default: 1GiB.
    .PARAMETER Machine
    The lab's machine. Default: auto.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.DiskCalibration. With -AsJob Hotset.Job.
    .EXAMPLE
    Measure-HotsetDisk
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.DiskCalibration', 'Hotset.Job')]
    param(
        [string] $Model,

        [ValidateRange(0.1, 1000.0)]
        [Nullable[double]] $TimeScale,

        [string] $Size,

        [ValidateSet('auto', 'local', 'image', 'uml', 'vm')]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection '' $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Measure the lab''s slow disk with fio, and compare it with its model')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'disk calibrate' -AsJob $AsJob.IsPresent -Values @{
            model      = $Model
            time_scale = $TimeScale
            size       = $Size
            machine    = $Machine
        }
    }
}

function Measure-HotsetDiskModel {
    <#
    .SYNOPSIS
    Measure every device model with fio, and compare it with what the model itself promises.
    .DESCRIPTION
    4k, 8k, 64k and 1M requests, 1 to 64 at a time, read, written and mixed: some two hours. A call
    that was interrupted goes on where it ended.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset disk
    calibrate-all".
    .PARAMETER Only
    Only cells whose name has all of these words, such as 'dc500m 4k QD8 read' or '64k write'.
    .PARAMETER Size
    Size of each device. Default: 1GiB.
    .PARAMETER Seconds
    Seconds of a run at most; fast cells take fewer. Default: 5.
    .PARAMETER Again
    Measure what an earlier call has measured, too.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.DiskFidelity. With -AsJob Hotset.Job.
    .EXAMPLE
    Measure-HotsetDiskModel
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.DiskFidelity', 'Hotset.Job')]
    param(
        [string[]] $Only,

        [string] $Size,

        [ValidateRange(2, 3600)]
        [Nullable[int]] $Seconds,

        [switch] $Again,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Measure every device model with fio, and compare it with what the model itself promises')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'disk calibrate-all' -AsJob $AsJob.IsPresent -Values @{
            only    = $Only
            size    = $Size
            seconds = $Seconds
            again   = $Again
        }
    }
}

function Disable-HotsetDiskMember {
    <#
    .SYNOPSIS
    Make a member of a served array fail. A hot spare takes its place if there is one.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset disk
    fail".
    .PARAMETER Socket
    Control socket of flashdev serve -Control.
    .PARAMETER Member
    The member's number, from 0.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Socket: -Socket
    .OUTPUTS
    Hotset.DiskArray. With -AsJob Hotset.Job.
    .EXAMPLE
    Disable-HotsetDiskMember /srv/hotset/array.sock 3
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.DiskArray', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Socket,

        [Parameter(Mandatory, Position = 1, ValueFromPipelineByPropertyName)]
        [ValidateRange(0, 1000)]
        [int] $Member,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Socket)) {
            $what = Get-HotsetSubject $Connection $each
            $go = $PSCmdlet.ShouldProcess($what, 'Make a member of a served array fail')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'disk fail' -AsJob $AsJob.IsPresent -Values @{
                socket = $each
                member = $Member
            }
        }
    }
}

function Get-HotsetDiskModel {
    <#
    .SYNOPSIS
    List the device models that come with hotset, and the values they should reach.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset disk models".
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.DiskModel
    .EXAMPLE
    Get-HotsetDiskModel | Sort-Object IopsQd32
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.DiskModel')]
    param(
        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'disk models'
    }
}

function Stop-HotsetDisk {
    <#
    .SYNOPSIS
    Cut the power of a served device: it loses its volatile buffer, and every request fails.
    .DESCRIPTION
    Serve its backing file again to see what is left.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset disk
    power-cut".
    .PARAMETER Socket
    Control socket of flashdev serve -Control.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Socket: -Socket
    .OUTPUTS
    Hotset.Disk. With -AsJob Hotset.Job.
    .EXAMPLE
    Stop-HotsetDisk /srv/hotset/array.sock
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.Disk', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Socket,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Socket)) {
            $what = Get-HotsetSubject $Connection $each
            $go = $PSCmdlet.ShouldProcess($what, 'Cut the power of a served device: it loses its volatile buffer, and every request fails')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'disk power-cut' -AsJob $AsJob.IsPresent -Values @{
                socket = $each
            }
        }
    }
}

function Measure-HotsetDiskRaffle {
    <#
    .SYNOPSIS
    Draw 100 tickets for ten files and read them: which layer serves those drawn often?
    .DESCRIPTION
    Cold by default: a file is dropped from the page cache before each read, so that the device
    serves it. With -Warm the page cache is emptied only once.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset disk
    raffle".
    .PARAMETER Folder
    A folder on the disk to test.
    .PARAMETER Model
    Read from a device model instead: its name or JSON file. Takes root, as it is mounted.
    .PARAMETER Size
    Size of each of the ten files. Default: 100MB.
    .PARAMETER Passes
    How often to draw all tickets. Default: 2.
    .PARAMETER Warm
    Let the page cache help after the first pass.
    .PARAMETER Seed
    Seed of the drawing order. Default: 1.
    .PARAMETER Keep
    Keep the files afterwards.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.DiskRaffle. With -AsJob Hotset.Job.
    .EXAMPLE
    Measure-HotsetDiskRaffle
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.DiskRaffle', 'Hotset.Job')]
    param(
        [Parameter(Position = 0)]
        [string] $Folder,

        [string] $Model,

        [string] $Size,

        [ValidateRange(1, 1000)]
        [Nullable[int]] $Passes,

        [switch] $Warm,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $Seed,

        [switch] $Keep,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection $Folder
        $go = $PSCmdlet.ShouldProcess($what, 'Draw 100 tickets for ten files and read them: which layer serves those drawn often?')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'disk raffle' -AsJob $AsJob.IsPresent -Values @{
            folder = $Folder
            model  = $Model
            size   = $Size
            passes = $Passes
            warm   = $Warm
            seed   = $Seed
            keep   = $Keep
        }
    }
}

function Repair-HotsetDiskMember {
    <#
    .SYNOPSIS
    Replace a failed member of a served array with a new device, and rebuild it.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset disk
    replace".
    .PARAMETER Socket
    Control socket of flashdev serve -Control.
    .PARAMETER Member
    The member's number, from 0.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Socket: -Socket
    .OUTPUTS
    Hotset.DiskArray. With -AsJob Hotset.Job.
    .EXAMPLE
    Repair-HotsetDiskMember /srv/hotset/array.sock 3
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.DiskArray', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Socket,

        [Parameter(Mandatory, Position = 1, ValueFromPipelineByPropertyName)]
        [ValidateRange(0, 1000)]
        [int] $Member,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Socket)) {
            $what = Get-HotsetSubject $Connection $each
            $go = $PSCmdlet.ShouldProcess($what, 'Replace a failed member of a served array with a new device, and rebuild it')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'disk replace' -AsJob $AsJob.IsPresent -Values @{
                socket = $each
                member = $Member
            }
        }
    }
}

function Measure-HotsetDiskReread {
    <#
    .SYNOPSIS
    Read the same files again on modelled disks: what does a hybrid disk gain, and what memory?
    .DESCRIPTION
    The raffle on each disk, first without the page cache, which would serve what is read again on
    any disk, then with it. Takes root.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'admin'. On the server's own command line this is "hotset disk
    reread".
    .PARAMETER Model
    A disk model's name or JSON file. It is the plain disk, the hybrid disk and the SSD of the
    published test if left out.
    .PARAMETER Size
    Size of each of the ten files; small ones stay in a disk's own buffer. Default: 100MB.
    .PARAMETER Passes
    Passes without the page cache; one with it follows. Default: 2.
    .PARAMETER Seed
    Seed of the drawing order. Default: 1.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.DiskReread. With -AsJob Hotset.Job.
    .EXAMPLE
    Measure-HotsetDiskReread
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.DiskReread', 'Hotset.Job')]
    param(
        [string[]] $Model,

        [string] $Size,

        [ValidateRange(1, 1000)]
        [Nullable[int]] $Passes,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $Seed,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Read the same files again on modelled disks: what does a hybrid disk gain, and what memory?')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'disk reread' -AsJob $AsJob.IsPresent -Values @{
            model  = $Model
            size   = $Size
            passes = $Passes
            seed   = $Seed
        }
    }
}

function Get-HotsetDiskArray {
    <#
    .SYNOPSIS
    Show the members of a served array, and how far a rebuild is.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset disk status".
    .PARAMETER Socket
    Control socket of flashdev serve -Control.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Socket: -Socket
    .OUTPUTS
    Hotset.DiskArray
    .EXAMPLE
    Get-HotsetDiskArray /srv/hotset/array.sock
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.DiskArray')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Socket,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Socket)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'disk status' -Values @{
                socket = $each
            }
        }
    }
}

function Test-HotsetHost {
    <#
    .SYNOPSIS
    Check what hotset needs on this computer, and say what installs it.
    .DESCRIPTION
    With -Machine: which kinds of cache that server can have, and what its disks lack. Modules of
    the kernel are loaded there, and nothing else is changed. Of a hotset that was installed as a
    Linux package, this computer is that server.

    The token needs the right 'read'. On the server's own command line this is "hotset doctor".
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.HostCheck
    .EXAMPLE
    Test-HotsetHost
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.HostCheck')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'doctor' -Values @{
            machine = $Machine
        }
    }
}

function Show-HotsetExperiment {
    <#
    .SYNOPSIS
    Print every command that the experiment would run, without running any.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'read'. On the server's own command line this is "hotset experiment
    plan".
    .PARAMETER File
    The experiment's TOML file.
    .PARAMETER Set
    Replace a value of the experiment file, for instance tpcc.users=32.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property File: -File
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Show-HotsetExperiment /srv/hotset/shop.toml
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $File,

        [string[]] $Set,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $File)) {
            Invoke-HotsetJob $PSCmdlet $Connection 'experiment plan' -AsJob $AsJob.IsPresent -Values @{
                file = $each
                set  = $Set
            }
        }
    }
}

function Invoke-HotsetExperiment {
    <#
    .SYNOPSIS
    Run an experiment: baseline, warm-up, accelerated, all-flash, report.
    .DESCRIPTION
    A file with a table of disks (reread, arrays) measures those, without a database.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset experiment
    run".
    .PARAMETER File
    The experiment's TOML file.
    .PARAMETER Set
    Replace a value of the experiment file, for instance tpcc.users=32.
    .PARAMETER Resume
    Resume a failed or interrupted run (id or 'last').
    .PARAMETER Force
    Allow overwriting data on the real disks that the experiment names.
    .PARAMETER Threshold
    Exit with code 5 unless this holds, such as 'factor>=5' or 'p95(accelerated)<20ms'; in addition
    to those in the file.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property File: -File
    .OUTPUTS
    Hotset.RunDocument. With -AsJob Hotset.Job.
    .EXAMPLE
    Invoke-HotsetExperiment /srv/hotset/shop.toml
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('Hotset.RunDocument', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $File,

        [string[]] $Set,

        [string] $Resume,

        [switch] $Force,

        [string[]] $Threshold,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $File)) {
            $what = Get-HotsetSubject $Connection $each
            $go = $PSCmdlet.ShouldProcess($what, 'Run an experiment: baseline, warm-up, accelerated, all-flash, report')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'experiment run' -AsJob $AsJob.IsPresent -Values @{
                file      = $each
                set       = $Set
                resume    = $Resume
                yes       = $Force
                threshold = $Threshold
            }
        }
    }
}

function Get-HotsetHeatMap {
    <#
    .SYNOPSIS
    Show the disk as a strip: where it is hot, and how much of that is cached.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset heat map".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Cells
    How many sections to divide the disk into.
    .PARAMETER NoResident
    Do not look up what is cached (looking it up pauses dm-cache for a moment).
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.HeatMap
    .EXAMPLE
    Get-HotsetHeatMap shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.HeatMap')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateRange(1, 10000)]
        [Nullable[int]] $Cells,

        [switch] $NoResident,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'heat map' -Values @{
                disk        = $each
                machine     = $Machine
                cells       = $Cells
                no_resident = $NoResident
            }
        }
    }
}

function Start-HotsetHeat {
    <#
    .SYNOPSIS
    Start counting the disk's requests per region, in the kernel.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset heat
    start".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER HalfLife
    Time after which a request counts half as much, such as 8h or 7d. Default: 1d.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Start-HotsetHeat shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $HalfLife,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Start counting the disk''s requests per region, in the kernel')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'heat start' -AsJob $AsJob.IsPresent -Values @{
                disk      = $each
                machine   = $Machine
                half_life = $HalfLife
            }
        }
    }
}

function Stop-HotsetHeat {
    <#
    .SYNOPSIS
    Stop counting. What was counted so far is kept.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset heat
    stop".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Stop-HotsetHeat shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Stop counting')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'heat stop' -AsJob $AsJob.IsPresent -Values @{
                disk    = $each
                machine = $Machine
            }
        }
    }
}

function Get-HotsetHeat {
    <#
    .SYNOPSIS
    List the hottest files, tables, databases or extents of a disk.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset heat top".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER By
    What to list. Default: file.
    .PARAMETER Count
    How many to list. Default: 20.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER NoResident
    Do not look up what is cached (looking it up pauses dm-cache for a moment).
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.Heat
    .EXAMPLE
    Get-HotsetHeat shop -By table -Dsn sqlserver://db1/shop -Credential sa

    The hottest tables of a database's disk.
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Heat')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateSet('file', 'table', 'database', 'extent')]
        [string] $By,

        [ValidateRange(1, 10000)]
        [Nullable[int]] $Count,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [switch] $NoResident,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'heat top' -Values @{
                disk        = $each
                machine     = $Machine
                by          = $By
                count       = $Count
                engine      = $login.Engine
                dsn         = $login.Dsn
                password    = $login.Password
                no_resident = $NoResident
            }
        }
    }
}

function Measure-HotsetLab {
    <#
    .SYNOPSIS
    Measure how many times slower the lab's CPU is than this computer's.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset lab
    calibrate".
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.LabSlowdown. With -AsJob Hotset.Job.
    .EXAMPLE
    Measure-HotsetLab
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.LabSlowdown', 'Hotset.Job')]
    param(
        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Measure how many times slower the lab''s CPU is than this computer''s')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'lab calibrate' -AsJob $AsJob.IsPresent
    }
}

function Stop-HotsetLab {
    <#
    .SYNOPSIS
    Stop the lab, and clean up what a killed run left behind.
    .DESCRIPTION
    Asks first where a benchmark or a warm-up runs in it, as that would fail.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'operate'. On the server's own command line this is "hotset lab down".
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Stop-HotsetLab
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Stop the lab, and clean up what a killed run left behind')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'lab down' -AsJob $AsJob.IsPresent -Values @{
            yes = $go
        }
    }
}

function New-HotsetLabImage {
    <#
    .SYNOPSIS
    Build the Debian image that the lab runs in, if it needs one and there is none yet.
    .DESCRIPTION
    The first run does this as well.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset lab
    image".
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    New-HotsetLabImage
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Build the Debian image that the lab runs in, if it needs one and there is none yet')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'lab image' -AsJob $AsJob.IsPresent
    }
}

function Get-HotsetLab {
    <#
    .SYNOPSIS
    Show what is running, and who started it.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset lab status".
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Lab
    .EXAMPLE
    Get-HotsetLab
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Lab')]
    param(
        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'lab status'
    }
}

function Start-HotsetLab {
    <#
    .SYNOPSIS
    Start a lab to try things out, and leave it running.
    .DESCRIPTION
    Its slow disk and its flash device are modelled. If you are root and this computer has FUSE and
    loop devices, the lab is PostgreSQL with TPC-C on an accelerated disk, right here. Otherwise it
    boots a machine (User-Mode Linux if that boots here and there is no KVM, else a virtual
    machine), and you put a cache in front of its disk with New-HotsetTier.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset lab up".
    .PARAMETER Model
    The slow disk's model. Default: nas-2014.
    .PARAMETER Machine
    local: this computer, with a cache in user space and a loaded database. The others boot a
    machine with two disks and no cache yet. Default: auto.
    .PARAMETER Warehouses
    TPC-C warehouses of the database (local). Default: 2.
    .PARAMETER TimeScale
    Slow the disk down by this factor. Default: 1.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Start-HotsetLab
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [string] $Model,

        [ValidateSet('auto', 'local', 'uml', 'vm')]
        [string] $Machine,

        [ValidateRange(1, 100)]
        [Nullable[int]] $Warehouses,

        [ValidateRange(0.1, 1000.0)]
        [Nullable[double]] $TimeScale,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection '' $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Start a lab to try things out, and leave it running')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'lab up' -AsJob $AsJob.IsPresent -Values @{
            model      = $Model
            machine    = $Machine
            warehouses = $Warehouses
            time_scale = $TimeScale
        }
    }
}

function Get-HotsetProgram {
    <#
    .SYNOPSIS
    List the programs that hotset copied to a machine, and what uses them.
    .DESCRIPTION
    A copy of each version stays, since engines go on from the one that they were started from.

    The token needs the right 'read'. On the server's own command line this is "hotset programs
    list".
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Program
    .EXAMPLE
    Get-HotsetProgram
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Program')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'programs list' -Values @{
            machine = $Machine
        }
    }
}

function Remove-HotsetProgram {
    <#
    .SYNOPSIS
    Remove programs that hotset copied to a machine.
    .DESCRIPTION
    A copy that a process runs, or that a unit or a script names, is refused: nothing is removed
    then. The next command that needs a program copies it again.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'admin'. On the server's own command line this is "hotset programs
    rm".
    .PARAMETER Names
    Copies to remove, as in Get-HotsetProgram; default: all.
    .PARAMETER Unused
    Remove what nothing uses, and leave the others.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Remove-HotsetProgram
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0)]
        [string[]] $Names,

        [switch] $Unused,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection '' $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Remove programs that hotset copied to a machine')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'programs rm' -AsJob $AsJob.IsPresent -Values @{
            names   = $Names
            unused  = $Unused
            machine = $Machine
        }
    }
}

function Get-HotsetHistory {
    <#
    .SYNOPSIS
    Show what a console recorded of a disk: hit ratios, requests, dirty data, what happened.
    .DESCRIPTION
    The console's server records for as long as it runs; times in which it did not run are shown as
    not recorded. The machine itself is not asked, and the record is only read.

    The token needs the right 'read'. On the server's own command line this is "hotset report
    history".
    .PARAMETER Disk
    The disk, also one that is gone; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Since
    How far back, such as 90min, 24h or 7d. A console keeps 8 days. Default: 24h.
    .PARAMETER Step
    The time of a row, such as 5min or 1h. Kept are steps of 10 s for 2 hours, of 1 min for 26
    hours, of 5 min for 8 days; without it, about a hundred rows come.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.History
    .EXAMPLE
    Get-HotsetHistory shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.History')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $Since,

        [string] $Step,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'report history' -Values @{
                disk    = $each
                machine = $Machine
                since   = $Since
                step    = $Step
            }
        }
    }
}

function Get-HotsetMetric {
    <#
    .SYNOPSIS
    Print the counters of all accelerated disks, and their condition, as OpenMetrics text.
    .DESCRIPTION
    Condition: state, metadata, pins, thin pools, wear and warm-ups, as Get-HotsetHealth has them.

    The token needs the right 'metrics'. On the server's own command line this is "hotset report
    metrics".
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String
    .EXAMPLE
    Get-HotsetMetric
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('System.String')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'report metrics' -Values @{
            machine = $Machine
        }
    }
}

function Remove-HotsetRun {
    <#
    .SYNOPSIS
    Delete a run and all its files in the archive.
    .DESCRIPTION
    A deletion that was interrupted is finished in the same way: Get-HotsetRun shows it.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset runs rm".
    .PARAMETER Run
    A run's whole id.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Run: -Run
    .OUTPUTS
    System.String
    .EXAMPLE
    Get-HotsetRun | Where-Object State -eq failed | Remove-HotsetRun -Confirm:$false
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Run,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Run)) {
            $what = Get-HotsetSubject $Connection $each
            $go = $PSCmdlet.ShouldProcess($what, 'Delete a run and all its files in the archive')
            if (-not $go) { continue }
            Invoke-HotsetQuery $PSCmdlet $Connection 'runs rm' -Values @{
                run = $each
            }
        }
    }
}

function Get-HotsetRunResult {
    <#
    .SYNOPSIS
    Show what a run measured.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset runs show".
    .PARAMETER Run
    A run's id, the beginning of one, or 'last'.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Run: -Run
    .OUTPUTS
    Hotset.RunDocument
    .EXAMPLE
    Get-HotsetRunResult last
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.RunDocument')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Run,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Run)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'runs show' -Values @{
                run = $each
            }
        }
    }
}

function Measure-HotsetTrend {
    <#
    .SYNOPSIS
    Track one value over the runs of a set-up, and show where its level changed.
    .DESCRIPTION
    Runs belong to one set-up if their settings and machines are the same. Versions and kernels may
    differ; they are named where the level changed. A level has at least two runs.

    The token needs the right 'read'. On the server's own command line this is "hotset runs trend".
    .PARAMETER Run
    A run of the set-up: its id, the beginning of one, or 'last'. Default: last.
    .PARAMETER Metric
    The value to track: a metric as in an experiment's thresholds, such as factor,
    'p95(accelerated)' or queries. Default: nopm, or tps for your own SQL.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Run: -Run
    .OUTPUTS
    Hotset.Trend
    .EXAMPLE
    Measure-HotsetTrend last
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Trend')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Run,

        [string] $Metric,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Run)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'runs trend' -Values @{
                run    = $each
                metric = $Metric
            }
        }
    }
}

function Invoke-HotsetSql {
    <#
    .SYNOPSIS
    Run SQL scripts with many users and measure a window.
    .DESCRIPTION
    Scripts are written as for pgbench: statements end in semicolons, and \set, \sleep, \gset, \aset
    and \if work. Their changes to the database are not undone.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset sql run".
    .PARAMETER Script
    SQL files on the hotset server, in a folder that its remote.toml allows, with their weights,
    such as /srv/sql/checkout.sql@70.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Users
    Number of virtual users. A rising list, such as 1, 2, 4, 8, measures a curve, with a window for
    each number.
    .PARAMETER RampupSeconds
    Seconds to run before measuring starts. Default: 10.
    .PARAMETER DurationSeconds
    Length of the measured window, in seconds. Default: 60.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Define
    A variable for all scripts, such as scale=10.
    .PARAMETER Protocol
    How statements are sent: prepared once per connection, with the variables as parameters, as
    applications do; or as text with the values in it. Default: prepared.
    .PARAMETER Seed
    Seed of all random choices; equal seeds draw the same values. By default each run has another,
    and default_seed, by which hash and permute choose the popular values, is 1.
    .PARAMETER Rate
    Start transactions at this rate, such as 500/s, at random times. Latency then counts from when
    each was due. Without a rate, users pause only where a script sleeps.
    .PARAMETER FindRate
    Search for the highest rate that meets this limit, such as 'p95<50ms'. Each rate takes a ramp-up
    and a window.
    .PARAMETER UntilSteady
    Repeat the window until it is known to be steady (as SNIA's PTS defines it), for at most this
    long, such as 10m. The last window counts.
    .PARAMETER Fresh
    Run on a copy of the database and drop it afterwards, so that the database stays as it is and
    every run starts the same. PostgreSQL only; needs disk space for the copy.
    .PARAMETER MaxErrors
    Fail the run if more transactions than this fail, ramp-up included. Default: 100.
    .PARAMETER Threshold
    What the run must reach, such as 'tps>=500' or 'p95(checkout)<20ms': the job fails if it does
    not.
    .PARAMETER Sample
    Also sample the database's server: its CPU, and the I/O of the devices below its accelerated
    disks.
    .PARAMETER Label
    What to call the measurement in the archive of runs, such as before: measurements of one label
    are compared together.
    .PARAMETER NoKeep
    Keep what was measured as a run in the archive.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.SqlRun. With -AsJob Hotset.Job.
    .EXAMPLE
    Invoke-HotsetSql sqlserver://db1/shop -Credential sa -Users 32 -Script /srv/sql/checkout.sql@70, /srv/sql/search.sql@30 | Select-Object Tps, Thresholds

    Your own transactions per second.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('Hotset.SqlRun', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string[]] $Script,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [int[]] $Users,

        [ValidateRange(0.0, 1209600.0)]
        [Nullable[double]] $RampupSeconds,

        [ValidateRange(1.0, 1209600.0)]
        [Nullable[double]] $DurationSeconds,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string[]] $Define,

        [ValidateSet('prepared', 'simple')]
        [string] $Protocol,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $Seed,

        [string] $Rate,

        [string[]] $FindRate,

        [string] $UntilSteady,

        [switch] $Fresh,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $MaxErrors,

        [string[]] $Threshold,

        [ValidateNotNullOrEmpty()]
        [string] $Sample,

        [string] $Label,

        [switch] $NoKeep,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Run SQL scripts with many users and measure a window')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'sql run' -AsJob $AsJob.IsPresent -Values @{
            script       = $Script
            dsn          = $login.Dsn
            password     = $login.Password
            users        = $Users -join ','
            rampup       = $RampupSeconds
            duration     = $DurationSeconds
            engine       = $login.Engine
            define       = $Define
            protocol     = $Protocol
            seed         = $Seed
            rate         = $Rate
            find_rate    = $FindRate
            until_steady = $UntilSteady
            fresh        = $Fresh
            max_errors   = $MaxErrors
            threshold    = $Threshold
            sample       = $Sample
            label        = $Label
            keep         = -not $NoKeep
        }
    }
}

function Enable-HotsetTier {
    <#
    .SYNOPSIS
    Set up the devices again after a reboot: of all disks, or of the one you name.
    .DESCRIPTION
    What may lose data is done to one that is named. Damaged metadata is found before it is used.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    With -WhatIf the server says what it would do, and that is returned as text.

    The token needs the right 'operate'. On the server's own command line this is "hotset tier
    activate".
    .PARAMETER Disk
    The accelerated disk; all of the machine if left out.
    .PARAMETER Unit
    Also write a systemd unit that does this at every boot.
    .PARAMETER Force
    With -Unit: change /etc/fstab where it mounts the origin.
    .PARAMETER KeepFlash
    Trust what the flash holds, although the origin was written to in between.
    .PARAMETER BreakReservation
    Take the origin away from the host that has reserved it. That host's writes then fail.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Enable-HotsetTier shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [switch] $Unit,

        [switch] $Force,

        [switch] $KeepFlash,

        [switch] $BreakReservation,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Set up the devices again after a reboot: of all disks, or of the one you name')
            if (-not $go -and -not $WhatIfPreference) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier activate' -AsJob $AsJob.IsPresent -Values @{
                disk              = $each
                unit              = $Unit
                yes               = $Force
                keep_flash        = $KeepFlash
                break_reservation = $BreakReservation
                machine           = $Machine
                dry_run           = -not $go
            }
        }
    }
}

function New-HotsetTier {
    <#
    .SYNOPSIS
    Put a flash cache in front of a disk, in place: existing data is kept.
    .DESCRIPTION
    A second disk on the same flash uses what is left of it.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    With -WhatIf the server says what it would do, and that is returned as text.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset tier
    create".
    .PARAMETER Disk
    A name for the accelerated disk.
    .PARAMETER Flash
    The flash device, as /dev/disk/by-id/...; with userspace also a file.
    .PARAMETER Origin
    The slow device (or file, as above). Existing data is kept.
    .PARAMETER Cache
    Size of this disk's cache on the flash, such as 100GiB.
    .PARAMETER Database
    The kind of database: sets block size, write mode and bypass.
    .PARAMETER DatabaseSize
    How large the database is: userspace takes smaller blocks for a cache that holds less than a
    third of it.
    .PARAMETER Kind
    The kernel's dm-cache or bcache, or hotset's own engine in user space, which needs neither.
    Default: dm-cache.
    .PARAMETER Volume
    Size of a plain volume on the flash, for logs and temporary space.
    .PARAMETER Mode
    Write mode, in place of the one for this kind of database.
    .PARAMETER Block
    Size of the cache's blocks, in place of the one for this kind of database (not bcache).
    .PARAMETER Policy
    What decides which blocks are cached. Only userspace has a choice.
    .PARAMETER NoReserve
    Lets other hosts write to the origin.
    .PARAMETER BreakReservation
    Take the origin away from the host that has reserved it. That host's writes then fail.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Force
    Allow overwriting existing data.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    New-HotsetTier shop -Flash /dev/disk/by-id/nvme-fast -Origin /dev/disk/by-id/scsi-slow -Cache 100GiB -Database oltp -WhatIf

    Every command that would run on the server; none runs.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Disk,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Flash,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Origin,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Cache,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [ValidateSet('oltp', 'warehouse')]
        [string] $Database,

        [string] $DatabaseSize,

        [ValidateSet('dm-cache', 'bcache', 'userspace')]
        [string] $Kind,

        [string] $Volume,

        [ValidateSet('writeback', 'writethrough')]
        [string] $Mode,

        [string] $Block,

        [ValidateSet('hotset', 'smq', 'lru', 'sieve', 's3-fifo', 'arc')]
        [string] $Policy,

        [switch] $NoReserve,

        [switch] $BreakReservation,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $Force,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection $Disk $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Put a flash cache in front of a disk, in place: existing data is kept')
        if (-not $go -and -not $WhatIfPreference) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tier create' -AsJob $AsJob.IsPresent -Values @{
            disk              = $Disk
            flash             = $Flash
            origin            = $Origin
            cache             = $Cache
            database          = $Database
            database_size     = $DatabaseSize
            kind              = $Kind
            volume            = $Volume
            mode              = $Mode
            block             = $Block
            policy            = $Policy
            reserve           = -not $NoReserve
            break_reservation = $BreakReservation
            machine           = $Machine
            yes               = $Force
            dry_run           = -not $go
        }
    }
}

function Disable-HotsetTier {
    <#
    .SYNOPSIS
    Remove a disk's devices. What is cached stays on the flash, including dirty blocks.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tier
    deactivate".
    .PARAMETER Disk
    The accelerated disk. It is named, although there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Disable-HotsetTier shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Remove a disk''s devices')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier deactivate' -AsJob $AsJob.IsPresent -Values @{
                disk    = $each
                machine = $Machine
            }
        }
    }
}

function Remove-HotsetCard {
    <#
    .SYNOPSIS
    Detach all disks of a card, then remove its volume and the card itself.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset tier
    destroy".
    .PARAMETER Card
    The card, by its name or by that of a disk on it. It is named, although there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Force
    Allow overwriting existing data.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Card: -Card
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Remove-HotsetCard card1
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Card,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $Force,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Card)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Detach all disks of a card, then remove its volume and the card itself')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier destroy' -AsJob $AsJob.IsPresent -Values @{
                card    = $each
                machine = $Machine
                yes     = $Force
            }
        }
    }
}

function Remove-HotsetTier {
    <#
    .SYNOPSIS
    Write back dirty data, then remove the cache: the origin is a plain disk again.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset tier
    detach".
    .PARAMETER Disk
    The accelerated disk. It is named, although there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER FlashIsDead
    Detach although nothing can be written back, and say what is lost.
    .PARAMETER Force
    Allow overwriting existing data.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Remove-HotsetTier shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $FlashIsDead,

        [switch] $Force,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Write back dirty data, then remove the cache: the origin is a plain disk again')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier detach' -AsJob $AsJob.IsPresent -Values @{
                disk          = $each
                machine       = $Machine
                flash_is_dead = $FlashIsDead
                yes           = $Force
            }
        }
    }
}

function Get-HotsetExplanation {
    <#
    .SYNOPSIS
    Would this hit? Show how much of a file or table is cached, and how hot it is.
    .DESCRIPTION
    Also shows its hits so far, and what would happen to its next requests.

    The token needs the right 'read'. On the server's own command line this is "hotset tier
    explain".
    .PARAMETER Name
    A file on the disk, or a table (with -Dsn).
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.Explanation
    .EXAMPLE
    Get-HotsetExplanation shop shop-morning
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Explanation')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Name,

        [Parameter(Position = 1, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'tier explain' -Values @{
                name     = $Name
                disk     = $each
                machine  = $Machine
                engine   = $login.Engine
                dsn      = $login.Dsn
                password = $login.Password
            }
        }
    }
}

function Sync-HotsetTier {
    <#
    .SYNOPSIS
    Write all dirty data back to the origin. The cache stays in use.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tier
    flush".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Get-HotsetTier | Where-Object DirtyBytes -gt 1GB | Sync-HotsetTier
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Write all dirty data back to the origin')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier flush' -AsJob $AsJob.IsPresent -Values @{
                disk    = $each
                machine = $Machine
            }
        }
    }
}

function Get-HotsetHealth {
    <#
    .SYNOPSIS
    Say what changed on the accelerated disks and what is to be done, each with its command.
    .DESCRIPTION
    Looks at the hit ratio beside earlier days, what became hot, pins, dirty data, warm-ups,
    metadata, thin pools and wear. Advice counts as nothing to be done.

    The token needs the right 'read'. On the server's own command line this is "hotset tier health".
    .PARAMETER Disk
    The accelerated disk; all of the machine if left out.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.Health
    .EXAMPLE
    Get-HotsetHealth shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Health')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'tier health' -Values @{
                disk     = $each
                machine  = $Machine
                engine   = $login.Engine
                dsn      = $login.Dsn
                password = $login.Password
            }
        }
    }
}

function Import-HotsetCard {
    <#
    .SYNOPSIS
    Register a flash device that carries hotset's label on this machine.
    .DESCRIPTION
    Use it after the loss of the root disk, or when flash and origins have moved to another server.
    Then run Enable-HotsetTier, which sets up the devices.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'admin'. On the server's own command line this is "hotset tier
    import".
    .PARAMETER Flash
    The flash device, as /dev/disk/by-id/....
    .PARAMETER TakeOver
    It belongs to another machine, which no longer uses it.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Flash: -Flash
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Import-HotsetCard /dev/disk/by-id/nvme-fast
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Flash,

        [switch] $TakeOver,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Flash)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Register a flash device that carries hotset''s label on this machine')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier import' -AsJob $AsJob.IsPresent -Values @{
                flash     = $each
                take_over = $TakeOver
                machine   = $Machine
            }
        }
    }
}

function Repair-HotsetTier {
    <#
    .SYNOPSIS
    Repair cache metadata that Enable-HotsetTier found damaged; no write is lost unasked.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tier
    repair".
    .PARAMETER Disk
    The accelerated disk. It is named, although there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Force
    Of a cache in user space: write back what is certain, give up what is not, and begin with an
    empty cache. Without it, only say what that is.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Repair-HotsetTier shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $Force,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Repair cache metadata that Enable-HotsetTier found damaged; no write is lost unasked')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier repair' -AsJob $AsJob.IsPresent -Values @{
                disk    = $each
                machine = $Machine
                yes     = $Force
            }
        }
    }
}

function Get-HotsetCachedRange {
    <#
    .SYNOPSIS
    List what is cached, as ranges of bytes of the disk, in order.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset tier
    resident".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Limit
    Show at most this many ranges. Default: 100000.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.CachedRange
    .EXAMPLE
    Get-HotsetCachedRange shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.CachedRange')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateRange(1, 1000000)]
        [Nullable[int]] $Limit,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'tier resident' -Values @{
                disk    = $each
                machine = $Machine
                limit   = $Limit
            }
        }
    }
}

function Resize-HotsetTier {
    <#
    .SYNOPSIS
    Adapt to an origin that has grown; with -Cache, change the size of the cache.
    .DESCRIPTION
    The file system may stay mounted.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tier
    resize".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Cache
    The cache's new size.
    .PARAMETER Flush
    Write back dirty data first, if that is necessary.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Resize-HotsetTier shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [string] $Cache,

        [switch] $Flush,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Adapt to an origin that has grown; with -Cache, change the size of the cache')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier resize' -AsJob $AsJob.IsPresent -Values @{
                disk    = $each
                cache   = $Cache
                flush   = $Flush
                machine = $Machine
            }
        }
    }
}

function Find-HotsetCard {
    <#
    .SYNOPSIS
    Find flash devices that carry hotset's label, even those not registered on this machine.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset tier scan".
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Card
    .EXAMPLE
    Find-HotsetCard
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Card')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'tier scan' -Values @{
            machine = $Machine
        }
    }
}

function Set-HotsetTier {
    <#
    .SYNOPSIS
    Change the policy or the write mode of a disk while it is in use, or the name of its origin.
    .DESCRIPTION
    Before write-through starts, all dirty data is written back. A new name of the origin is taken
    only if it leads to the same disk, by World Wide Name, serial number or UUID.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tier set".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Policy
    What decides which blocks are cached (only with userspace).
    .PARAMETER Mode
    When a write counts as done: once it is on the flash, or on the origin as well.
    .PARAMETER Origin
    The origin's new name, if it has another now; the disk must be down.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Set-HotsetTier shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [ValidateSet('hotset', 'smq', 'lru', 'sieve', 's3-fifo', 'arc')]
        [string] $Policy,

        [ValidateSet('writeback', 'writethrough')]
        [string] $Mode,

        [string] $Origin,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Change the policy or the write mode of a disk while it is in use, or the name of its origin')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'tier set' -AsJob $AsJob.IsPresent -Values @{
                disk    = $each
                policy  = $Policy
                mode    = $Mode
                origin  = $Origin
                machine = $Machine
            }
        }
    }
}

function Get-HotsetTier {
    <#
    .SYNOPSIS
    Show kind, sizes, mode, use, hit ratio and state of the accelerated disks.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset tier status".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.Disk
    .EXAMPLE
    Get-HotsetTier -Connection (Get-HotsetConnection) | Sort-Object HitRatio

    The disks of all connected servers, lowest hit ratio first.
    .EXAMPLE
    Get-HotsetTier | Where-Object DirtyBytes -gt 1GB
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Disk')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'tier status' -Values @{
                disk    = $each
                machine = $Machine
            }
        }
    }
}

function New-HotsetTpccDatabase {
    <#
    .SYNOPSIS
    Load warehouses, then check the twelve consistency conditions (clause 3.3.2).
    .DESCRIPTION
    Refuses if there are TPC-C tables already, or anything else with a name that it needs. Drops
    what it made when it fails.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'operate'. On the server's own command line this is "hotset tpcc
    build".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Warehouses
    Warehouses, about 105 MB each. Default: 10.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Seed
    Seed of all random choices. Default: 1.
    .PARAMETER Replace
    Drop the TPC-C tables that hotset made here first; asks.
    .PARAMETER Driver
    hotset's own driver, or HammerDB from the release that HAMMERDB_HOME names. Default: hotset.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    New-HotsetTpccDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateRange(1, 1000000)]
        [Nullable[int]] $Warehouses,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $Seed,

        [switch] $Replace,

        [ValidateSet('hotset', 'hammerdb')]
        [string] $Driver,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Load warehouses, then check the twelve consistency conditions (clause 3.3.2)')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpcc build' -AsJob $AsJob.IsPresent -Values @{
            dsn        = $login.Dsn
            password   = $login.Password
            warehouses = $Warehouses
            engine     = $login.Engine
            seed       = $Seed
            replace    = $Replace
            driver     = $Driver
            yes        = $go
        }
    }
}

function Test-HotsetTpccDatabase {
    <#
    .SYNOPSIS
    Check the twelve consistency conditions on all warehouses.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tpcc
    check".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.TpccCondition. With -AsJob Hotset.Job.
    .EXAMPLE
    Test-HotsetTpccDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpccCondition', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Check the twelve consistency conditions on all warehouses')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpcc check' -AsJob $AsJob.IsPresent -Values @{
            dsn      = $login.Dsn
            password = $login.Password
            engine   = $login.Engine
        }
    }
}

function Remove-HotsetTpccDatabase {
    <#
    .SYNOPSIS
    Remove the TPC-C tables and procedures that hotset made.
    .DESCRIPTION
    Refuses if they are somebody else's, or if something of somebody else's needs them.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset tpcc drop".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Remove-HotsetTpccDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Remove the TPC-C tables and procedures that hotset made')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpcc drop' -AsJob $AsJob.IsPresent -Values @{
            dsn      = $login.Dsn
            password = $login.Password
            engine   = $login.Engine
            yes      = $go
        }
    }
}

function Invoke-HotsetTpcc {
    <#
    .SYNOPSIS
    Run the five transactions and measure a window.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tpcc run".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Users
    Number of virtual users. A rising list, such as 1, 2, 4, 8, measures a curve, with a window for
    each number.
    .PARAMETER Warehouses
    Warehouses, about 105 MB each. Default: 10.
    .PARAMETER RampupSeconds
    Seconds to run before measuring starts; default: 10, with HammerDB 60.
    .PARAMETER DurationSeconds
    Length of the measured window, in seconds. Default: 60.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Seed
    Seed of all random choices; equal seeds access the same rows. By default each run has another,
    and the same rows are popular in all.
    .PARAMETER Items
    How items and customers are drawn: nurand as TPC-C says, where the hottest 20 % of stock's
    blocks get 62 % of its accesses, or uniform as HammerDB does, with its mix of transactions.
    Default: nurand.
    .PARAMETER ThinkTime
    Use keying and think times (clause 5.2.5).
    .PARAMETER HomeWarehouses
    Keep each user at one warehouse, so that the working set is only as large as the number of
    users. Otherwise each transaction picks its warehouse.
    .PARAMETER Rate
    Start transactions at this rate, such as 500/s, at random times. Latency then counts from when
    each was due. Without a rate, users never pause.
    .PARAMETER FindRate
    Search for the highest rate that meets this limit, such as 'p95<50ms', or tpc-c for TPC-C's own
    limits. Each rate takes a ramp-up and a window.
    .PARAMETER UntilSteady
    Repeat the window until it is known to be steady (as SNIA's PTS defines it), for at most this
    long, such as 10m. The last window counts.
    .PARAMETER Fresh
    Run on a copy of the database and drop it afterwards, so that the database stays as loaded and
    every run starts the same. PostgreSQL only; needs disk space for the copy.
    .PARAMETER Threshold
    What the run must reach, such as 'nopm>=50000' or 'p95(new_order)<20ms': the job fails if it
    does not.
    .PARAMETER Sample
    Also sample the database's server: its CPU, and the I/O of the devices below its accelerated
    disks.
    .PARAMETER Label
    What to call the measurement in the archive of runs, such as before: measurements of one label
    are compared together.
    .PARAMETER NoKeep
    Keep what was measured as a run in the archive.
    .PARAMETER NoCheck
    Does not check the twelve consistency conditions afterwards.
    .PARAMETER Driver
    hotset's own driver, or HammerDB from the release that HAMMERDB_HOME names. Default: hotset.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.TpccRun. With -AsJob Hotset.Job.
    .EXAMPLE
    (Invoke-HotsetTpcc sqlserver://db1/tpcc -Credential sa -Users 32 -Warehouses 100).Nopm

    New orders per minute.
    .EXAMPLE
    Invoke-HotsetTpcc sqlserver://db1/tpcc -Credential sa -Users 1, 2, 4, 8, 16 | Select-Object { $_.Options.Users }, Nopm

    A curve over users.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpccRun', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [int[]] $Users,

        [ValidateRange(1, 1000000)]
        [Nullable[int]] $Warehouses,

        [ValidateRange(0.0, 1209600.0)]
        [Nullable[double]] $RampupSeconds,

        [ValidateRange(1.0, 1209600.0)]
        [Nullable[double]] $DurationSeconds,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $Seed,

        [ValidateSet('nurand', 'uniform')]
        [string] $Items,

        [switch] $ThinkTime,

        [switch] $HomeWarehouses,

        [string] $Rate,

        [string[]] $FindRate,

        [string] $UntilSteady,

        [switch] $Fresh,

        [string[]] $Threshold,

        [ValidateNotNullOrEmpty()]
        [string] $Sample,

        [string] $Label,

        [switch] $NoKeep,

        [switch] $NoCheck,

        [ValidateSet('hotset', 'hammerdb')]
        [string] $Driver,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Run the five transactions and measure a window')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpcc run' -AsJob $AsJob.IsPresent -Values @{
            dsn             = $login.Dsn
            password        = $login.Password
            users           = $Users -join ','
            warehouses      = $Warehouses
            rampup          = $RampupSeconds
            duration        = $DurationSeconds
            engine          = $login.Engine
            seed            = $Seed
            items           = $Items
            think_time      = $ThinkTime
            home_warehouses = $HomeWarehouses
            rate            = $Rate
            find_rate       = $FindRate
            until_steady    = $UntilSteady
            fresh           = $Fresh
            threshold       = $Threshold
            sample          = $Sample
            label           = $Label
            keep            = -not $NoKeep
            check           = -not $NoCheck
            driver          = $Driver
        }
    }
}

function New-HotsetTpchDatabase {
    <#
    .SYNOPSIS
    Load the eight tables, with keys, indexes and statistics.
    .DESCRIPTION
    Refuses if there are TPC-H tables already, or anything else with a name that it needs. Drops
    what it made when it fails. The generated data stays in the cache folder for the next build.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'operate'. On the server's own command line this is "hotset tpch
    build".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Scale
    Scale factor; 1 is about 1 GB of data. Default: 1.
    .PARAMETER Replace
    Drop the TPC-H tables that hotset made here first; asks.
    .PARAMETER Processes
    How many processes load at once; default: one per CPU.
    .PARAMETER Driver
    hotset's own driver, or HammerDB from the release that HAMMERDB_HOME names. Default: hotset.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    New-HotsetTpchDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateRange(0.0, 100000.0)]
        [Nullable[double]] $Scale,

        [switch] $Replace,

        [ValidateRange(1, 1024)]
        [Nullable[int]] $Processes,

        [ValidateSet('hotset', 'hammerdb')]
        [string] $Driver,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Load the eight tables, with keys, indexes and statistics')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpch build' -AsJob $AsJob.IsPresent -Values @{
            dsn       = $login.Dsn
            password  = $login.Password
            scale     = $Scale
            replace   = $Replace
            processes = $Processes
            driver    = $Driver
            engine    = $login.Engine
            yes       = $go
        }
    }
}

function Test-HotsetTpchDatabase {
    <#
    .SYNOPSIS
    Check row counts and foreign keys, and compare the answers with DuckDB's.
    .DESCRIPTION
    DuckDB works on the same generated data.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tpch
    check".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Queries
    Which of the 22 queries; default: all.
    .PARAMETER QueryTimeoutSeconds
    Seconds after which a query is cancelled.
    .PARAMETER Scale
    The scale factor you expect; it is an error if another one is loaded.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.TpchCheck. With -AsJob Hotset.Job.
    .EXAMPLE
    Test-HotsetTpchDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpchCheck', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateRange(1, 22)]
        [int[]] $Queries,

        [ValidateRange(0.001, 1209600.0)]
        [Nullable[double]] $QueryTimeoutSeconds,

        [ValidateRange(0.0, 100000.0)]
        [Nullable[double]] $Scale,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Check row counts and foreign keys, and compare the answers with DuckDB''s')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpch check' -AsJob $AsJob.IsPresent -Values @{
            dsn      = $login.Dsn
            password = $login.Password
            queries  = $Queries -join ','
            timeout  = $QueryTimeoutSeconds
            scale    = $Scale
            engine   = $login.Engine
        }
    }
}

function Remove-HotsetTpchDatabase {
    <#
    .SYNOPSIS
    Remove the TPC-H tables that hotset made.
    .DESCRIPTION
    Refuses if they are somebody else's, or if something of somebody else's needs them.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    It asks for confirmation first; in a script use -Confirm:$false.

    The token needs the right 'admin'. On the server's own command line this is "hotset tpch drop".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Remove-HotsetTpchDatabase sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Remove the TPC-H tables that hotset made')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpch drop' -AsJob $AsJob.IsPresent -Values @{
            dsn      = $login.Dsn
            password = $login.Password
            engine   = $login.Engine
            yes      = $go
        }
    }
}

function Invoke-HotsetTpch {
    <#
    .SYNOPSIS
    Run the 22 queries one after another; with -Streams, also several streams at once.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset tpch run".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Streams
    After the power run, a throughput run with this many query streams; min: the fewest that clause
    5.3.4 allows.
    .PARAMETER Seed
    Seed of the queries' parameters; default: the validation parameters.
    .PARAMETER Queries
    Which of the 22 queries; default: all.
    .PARAMETER QueryTimeoutSeconds
    Seconds after which a query is cancelled.
    .PARAMETER Refresh
    Insert and delete 0.1 % of the orders around the queries; by default only with all 22.
    .PARAMETER Scale
    The scale factor you expect; it is an error if another one is loaded.
    .PARAMETER Threshold
    What the run must reach, such as 'queries<60s': the job fails if it does not.
    .PARAMETER Sample
    Also sample the database's server: its CPU, and the I/O of the devices below its accelerated
    disks.
    .PARAMETER Label
    What to call the measurement in the archive of runs, such as before: measurements of one label
    are compared together.
    .PARAMETER NoKeep
    Keep what was measured as a run in the archive.
    .PARAMETER Driver
    hotset's own driver, or HammerDB from the release that HAMMERDB_HOME names. Default: hotset.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.TpchRun. With -AsJob Hotset.Job.
    .EXAMPLE
    (Invoke-HotsetTpch sqlserver://db1/tpch -Credential sa -Queries 1, 6, 21).Power.Queries | Sort-Object Seconds
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpchRun', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [string] $Streams,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $Seed,

        [ValidateRange(1, 22)]
        [int[]] $Queries,

        [ValidateRange(0.001, 1209600.0)]
        [Nullable[double]] $QueryTimeoutSeconds,

        [Nullable[bool]] $Refresh,

        [ValidateRange(0.0, 100000.0)]
        [Nullable[double]] $Scale,

        [string[]] $Threshold,

        [ValidateNotNullOrEmpty()]
        [string] $Sample,

        [string] $Label,

        [switch] $NoKeep,

        [ValidateSet('hotset', 'hammerdb')]
        [string] $Driver,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection $Dsn
        $go = $PSCmdlet.ShouldProcess($what, 'Run the 22 queries one after another; with -Streams, also several streams at once')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'tpch run' -AsJob $AsJob.IsPresent -Values @{
            dsn       = $login.Dsn
            password  = $login.Password
            streams   = $Streams
            seed      = $Seed
            queries   = $Queries -join ','
            timeout   = $QueryTimeoutSeconds
            refresh   = $Refresh
            scale     = $Scale
            threshold = $Threshold
            sample    = $Sample
            label     = $Label
            keep      = -not $NoKeep
            driver    = $Driver
            engine    = $login.Engine
        }
    }
}

function Add-HotsetExclusion {
    <#
    .SYNOPSIS
    Keep these targets out of the cache.
    .DESCRIPTION
    A cache of kind userspace writes back and drops what it holds of them, and does not cache them
    again. The kernel's dm-cache and bcache may still promote them when they are used; there only
    warm-ups leave them out.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    exclude".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not mounted now. It is mounted there read-only for
    the duration.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Target
    Files, folders, tables, databases.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String or objects: -Target
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Add-HotsetExclusion table:dbo.orders
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Disk,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [psobject[]] $Target,

        [switch] $AsJob,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $targets = New-Object System.Collections.Generic.List[string]
        $from = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Target) {
            $targets.Add((ConvertTo-HotsetTarget $one))
            $from.Add($one)
        }
    }
    end {
        $origin = Get-HotsetOrigin $PSCmdlet $Connection $from.ToArray()
        if ($origin) { $Connection = $origin }
        $place = Get-HotsetOrigin $PSCmdlet $Machine $from.ToArray() Machine
        if ($place) { $Machine = $place }
        $Dsn = Get-HotsetInstance $PSCmdlet $Dsn $from.ToArray()
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection ($targets -join ', ') $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Keep these targets out of the cache')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'warmup exclude' -AsJob $AsJob.IsPresent -Values @{
            disk        = $Disk
            machine     = $Machine
            mount_point = $MountPoint
            engine      = $login.Engine
            dsn         = $login.Dsn
            password    = $login.Password
            targets     = $targets.ToArray()
        }
    }
}

function Get-HotsetPin {
    <#
    .SYNOPSIS
    List what is pinned, excluded and shared on a disk, and how much of it is cached.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset warmup list".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.Pin
    .EXAMPLE
    Get-HotsetPin shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Pin')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'warmup list' -Values @{
                disk    = $each
                machine = $Machine
            }
        }
    }
}

function Add-HotsetPin {
    <#
    .SYNOPSIS
    Keep these targets in the cache, whatever else is accessed.
    .DESCRIPTION
    A cache of kind userspace fetches them now, keeps room for them, and never evicts them. The
    kernel's dm-cache and bcache cannot do that: with them, pinned targets only come first in every
    warm-up, so schedule one.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    pin".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not mounted now. It is mounted there read-only for
    the duration.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Target
    Files, folders, tables, databases.
    .PARAMETER Rate
    Highest rate, such as 50MB/s.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String or objects: -Target
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Add-HotsetPin table:dbo.orders
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Disk,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [psobject[]] $Target,

        [string] $Rate,

        [switch] $AsJob,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $targets = New-Object System.Collections.Generic.List[string]
        $from = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Target) {
            $targets.Add((ConvertTo-HotsetTarget $one))
            $from.Add($one)
        }
    }
    end {
        $origin = Get-HotsetOrigin $PSCmdlet $Connection $from.ToArray()
        if ($origin) { $Connection = $origin }
        $place = Get-HotsetOrigin $PSCmdlet $Machine $from.ToArray() Machine
        if ($place) { $Machine = $place }
        $Dsn = Get-HotsetInstance $PSCmdlet $Dsn $from.ToArray()
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection ($targets -join ', ') $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Keep these targets in the cache, whatever else is accessed')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'warmup pin' -AsJob $AsJob.IsPresent -Values @{
            disk        = $Disk
            machine     = $Machine
            mount_point = $MountPoint
            engine      = $login.Engine
            dsn         = $login.Dsn
            password    = $login.Password
            targets     = $targets.ToArray()
            rate        = $Rate
        }
    }
}

function Get-HotsetWarmupPlan {
    <#
    .SYNOPSIS
    Show what a warm-up would do: what fits, what does not, the order, and how long it takes.
    .DESCRIPTION
    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    plan".
    .PARAMETER Target
    What to cache, most important first. A full path of a file or folder on the disk, table:NAME,
    index:NAME, database:NAME (these with -Dsn), region:OFFSET+LENGTH, heat, or snapshot:FILE. The
    pipeline also takes objects with SqlInstance and Name, such as those of Get-DbaDatabase.
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Pin
    A target that comes before all others.
    .PARAMETER Exclude
    A target to leave out.
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not mounted now. It is mounted there read-only for
    the duration.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER OriginRate
    The origin's sequential rate, such as 110MB/s; measured if left out.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String or objects: -Target
    .OUTPUTS
    Hotset.WarmupPlan
    .EXAMPLE
    Get-HotsetWarmupPlan database:shop -Dsn sqlserver://db1/shop -Credential sa

    How much of the database fits in the cache, how much is cached already, and how long the rest
    takes.
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.WarmupPlan')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [psobject[]] $Target,

        [ValidateNotNullOrEmpty()]
        [string] $Disk,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string[]] $Pin,

        [string[]] $Exclude,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [string] $OriginRate,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $targets = New-Object System.Collections.Generic.List[string]
        $from = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Target) {
            $targets.Add((ConvertTo-HotsetTarget $one))
            $from.Add($one)
        }
    }
    end {
        $origin = Get-HotsetOrigin $PSCmdlet $Connection $from.ToArray()
        if ($origin) { $Connection = $origin }
        $place = Get-HotsetOrigin $PSCmdlet $Machine $from.ToArray() Machine
        if ($place) { $Machine = $place }
        $Dsn = Get-HotsetInstance $PSCmdlet $Dsn $from.ToArray()
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        Invoke-HotsetQuery $PSCmdlet $Connection 'warmup plan' -Values @{
            targets     = $targets.ToArray()
            disk        = $Disk
            machine     = $Machine
            pin         = $Pin
            exclude     = $Exclude
            mount_point = $MountPoint
            engine      = $login.Engine
            dsn         = $login.Dsn
            password    = $login.Password
            origin_rate = $OriginRate
        }
    }
}

function Get-HotsetWarmup {
    <#
    .SYNOPSIS
    List the warm-up plans saved on this computer, newest last, and the state of each.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset warmup
    plans".
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Warmup
    .EXAMPLE
    Get-HotsetWarmup
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Warmup')]
    param(
        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'warmup plans'
    }
}

function Update-HotsetPin {
    <#
    .SYNOPSIS
    Look up again where pinned, excluded and shared targets are, and cache what is pinned.
    .DESCRIPTION
    Use it when tables have grown. Every warm-up of the disk does this as well.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    refresh".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not mounted now. It is mounted there read-only for
    the duration.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Rate
    Highest rate, such as 50MB/s.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Update-HotsetPin shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [string] $Rate,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Look up again where pinned, excluded and shared targets are, and cache what is pinned')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'warmup refresh' -AsJob $AsJob.IsPresent -Values @{
                disk        = $each
                machine     = $Machine
                mount_point = $MountPoint
                engine      = $login.Engine
                dsn         = $login.Dsn
                password    = $login.Password
                rate        = $Rate
            }
        }
    }
}

function Restore-HotsetSnapshot {
    <#
    .SYNOPSIS
    Cache what a snapshot lists.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    restore".
    .PARAMETER File
    A file that New-HotsetSnapshot wrote.
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Method
    dm-cache: offline fills an idle device at the origin's rate; online reads through a device in
    use until the policy promotes the blocks; auto chooses. bcache takes one pass of reads. Default:
    auto.
    .PARAMETER Rate
    Highest rate, such as 50MB/s.
    .PARAMETER Samples
    Offline: number of blocks to compare with the origin afterwards. Default: 100.
    .PARAMETER Share
    Online: stop when this share is cached. Default: 0.95.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.WarmupRun. With -AsJob Hotset.Job.
    .EXAMPLE
    Restore-HotsetSnapshot shop /srv/hotset/shop.toml
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.WarmupRun', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $File,

        [Parameter(ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateSet('auto', 'offline', 'online')]
        [string] $Method,

        [string] $Rate,

        [ValidateRange(0, 1000000)]
        [Nullable[int]] $Samples,

        [ValidateRange(0.01, 1.0)]
        [Nullable[double]] $Share,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Cache what a snapshot lists')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'warmup restore' -AsJob $AsJob.IsPresent -Values @{
                file    = $File
                disk    = $each
                machine = $Machine
                method  = $Method
                rate    = $Rate
                samples = $Samples
                share   = $Share
            }
        }
    }
}

function Start-HotsetWarmup {
    <#
    .SYNOPSIS
    Cache the targets. To continue after an interruption, use -Resume or the same command.
    .DESCRIPTION
    What is already cached stays if there is room. An offline warm-up needs an idle device: stop the
    database and unmount. If the device is not idle, the plan is saved for -Resume.

    It runs as a job on the server, which continues when this session ends. The job is returned at
    once: Wait-HotsetJob waits for it.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    run".
    .PARAMETER Target
    What to cache, most important first. A full path of a file or folder on the disk, table:NAME,
    index:NAME, database:NAME (these with -Dsn), region:OFFSET+LENGTH, heat, or snapshot:FILE. The
    pipeline also takes objects with SqlInstance and Name, such as those of Get-DbaDatabase.
    .PARAMETER Resume
    Resume this saved plan, or last: only what is missing is cached.
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Method
    dm-cache: offline fills an idle device at the origin's rate; online reads through a device in
    use until the policy promotes the blocks; auto chooses. bcache takes one pass of reads. Default:
    auto.
    .PARAMETER Pin
    A target that comes before all others.
    .PARAMETER Exclude
    A target to leave out.
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not mounted now. It is mounted there read-only for
    the duration.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Rate
    Highest rate, such as 50MB/s.
    .PARAMETER Samples
    Offline: number of blocks to compare with the origin afterwards. Default: 100.
    .PARAMETER Share
    Online: stop when this share is cached. Default: 0.95.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String or objects: -Target
    .OUTPUTS
    Hotset.Job
    .EXAMPLE
    Start-HotsetWarmup table:dbo.orders, index:IX_orders -Dsn sqlserver://db1/shop -Credential sa | Wait-HotsetJob

    Caches a table and its index, shows a progress bar, returns what was fetched.
    .EXAMPLE
    Get-DbaDatabase -SqlInstance db1 -Database shop | Start-HotsetWarmup -Credential sa

    A step of a dbatools script.
    .EXAMPLE
    'heat' | Start-HotsetWarmup -Disk shop -Rate 50MB/s

    The hottest blocks first, at no more than 50 MB/s.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline)]
        [psobject[]] $Target,

        [string] $Resume,

        [ValidateNotNullOrEmpty()]
        [string] $Disk,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateSet('auto', 'offline', 'online')]
        [string] $Method,

        [string[]] $Pin,

        [string[]] $Exclude,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [string] $Rate,

        [ValidateRange(0, 1000000)]
        [Nullable[int]] $Samples,

        [ValidateRange(0.01, 1.0)]
        [Nullable[double]] $Share,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $targets = New-Object System.Collections.Generic.List[string]
        $from = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Target) {
            $targets.Add((ConvertTo-HotsetTarget $one))
            $from.Add($one)
        }
    }
    end {
        $origin = Get-HotsetOrigin $PSCmdlet $Connection $from.ToArray()
        if ($origin) { $Connection = $origin }
        $place = Get-HotsetOrigin $PSCmdlet $Machine $from.ToArray() Machine
        if ($place) { $Machine = $place }
        $Dsn = Get-HotsetInstance $PSCmdlet $Dsn $from.ToArray()
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection ($targets -join ', ') $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Cache the targets')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'warmup run' -AsJob $true -Values @{
            targets     = $targets.ToArray()
            resume      = $Resume
            disk        = $Disk
            machine     = $Machine
            method      = $Method
            pin         = $Pin
            exclude     = $Exclude
            mount_point = $MountPoint
            engine      = $login.Engine
            dsn         = $login.Dsn
            password    = $login.Password
            rate        = $Rate
            samples     = $Samples
            share       = $Share
        }
    }
}

function Register-HotsetWarmupSchedule {
    <#
    .SYNOPSIS
    Write a systemd service (and a timer for -At) on the disk's machine.
    .DESCRIPTION
    hotset must be installed there, because the units run it. No unit ever holds a password: give
    -PasswordFile, a path on that machine.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    With -WhatIf the server says what it would do, and that is returned as text.

    The token needs the right 'admin'. On the server's own command line this is "hotset warmup
    schedule add".
    .PARAMETER Target
    What to cache at the times of -At, as for Start-HotsetWarmup.
    .PARAMETER At
    When to run, as in systemd.time(7), such as 'Mon..Fri 07:00'.
    .PARAMETER OnBoot
    Restore the last snapshot when the machine boots.
    .PARAMETER OnShutdown
    Save a snapshot when the machine shuts down.
    .PARAMETER Name
    Name of the schedule; by default it comes from the disk and the occasion.
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Method
    As for Start-HotsetWarmup. Default: auto.
    .PARAMETER Rate
    Highest rate, such as 50MB/s.
    .PARAMETER Engine
    The database product.
    .PARAMETER Dsn
    The database's address, as seen from that machine.
    .PARAMETER PasswordFile
    A file that holds the password, on the disk's machine.
    .PARAMETER NoEnable
    Write the units, but do not enable them.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String or objects: -Target
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Register-HotsetWarmupSchedule heat -Disk shop -At 'Mon..Fri 06:00'

    Every working day at six, on the server, whoever is logged in.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Position = 0, ValueFromPipeline)]
        [psobject[]] $Target,

        [string] $At,

        [switch] $OnBoot,

        [switch] $OnShutdown,

        [string] $Name,

        [ValidateNotNullOrEmpty()]
        [string] $Disk,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateSet('auto', 'offline', 'online')]
        [string] $Method,

        [string] $Rate,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [string] $PasswordFile,

        [switch] $NoEnable,

        [switch] $AsJob,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $targets = New-Object System.Collections.Generic.List[string]
        $from = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Target) {
            $targets.Add((ConvertTo-HotsetTarget $one))
            $from.Add($one)
        }
    }
    end {
        $origin = Get-HotsetOrigin $PSCmdlet $Connection $from.ToArray()
        if ($origin) { $Connection = $origin }
        $place = Get-HotsetOrigin $PSCmdlet $Machine $from.ToArray() Machine
        if ($place) { $Machine = $place }
        $what = Get-HotsetSubject $Connection ($targets -join ', ') $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Write a systemd service (and a timer for -At) on the disk''s machine')
        if (-not $go -and -not $WhatIfPreference) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'warmup schedule add' -AsJob $AsJob.IsPresent -Values @{
            targets       = $targets.ToArray()
            at            = $At
            on_boot       = $OnBoot
            on_shutdown   = $OnShutdown
            name          = $Name
            disk          = $Disk
            machine       = $Machine
            method        = $Method
            rate          = $Rate
            engine        = $Engine
            dsn           = $Dsn
            password_file = $PasswordFile
            no_enable     = $NoEnable
            dry_run       = -not $go
        }
    }
}

function Get-HotsetWarmupSchedule {
    <#
    .SYNOPSIS
    List the schedules on a machine: when each runs, how its last run came out, its command.
    .DESCRIPTION
    Of runs before the machine's last start systemd knows nothing, but for the snapshot that a
    shutdown saved.

    The token needs the right 'read'. On the server's own command line this is "hotset warmup
    schedule list".
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.WarmupSchedule
    .EXAMPLE
    Get-HotsetWarmupSchedule
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.WarmupSchedule')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'warmup schedule list' -Values @{
            machine = $Machine
        }
    }
}

function Unregister-HotsetWarmupSchedule {
    <#
    .SYNOPSIS
    Disable a schedule and remove its units.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'admin'. On the server's own command line this is "hotset warmup
    schedule remove".
    .PARAMETER Name
    The schedule's name, as in Get-HotsetWarmupSchedule.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Name: -Name
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Unregister-HotsetWarmupSchedule shop-morning
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Name,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Name)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Disable a schedule and remove its units')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'warmup schedule remove' -AsJob $AsJob.IsPresent -Values @{
                name    = $each
                machine = $Machine
            }
        }
    }
}

function Add-HotsetShare {
    <#
    .SYNOPSIS
    Guarantee a target a share of the cache, and limit it, while the disk is in use.
    .DESCRIPTION
    A scan of one database then cannot take another's share. To change a share, run the command
    again. Only for disks of kind userspace.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    share".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not mounted now. It is mounted there read-only for
    the duration.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Target
    A database, a table, a folder or a file.
    .PARAMETER Guarantee
    The share of the cache that is reserved for it, such as 30% or 20GiB. Default: 0%.
    .PARAMETER Limit
    The most of the cache that it may use, such as 60% or 50GiB. Default: 100%.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Add-HotsetShare database:shop -Guarantee 40% -Disk shop -Dsn sqlserver://db1/shop -Credential sa | Wait-HotsetJob

    A scan of another database can then take at most 60 % of the cache.
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Target,

        [string] $Guarantee,

        [string] $Limit,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Guarantee a target a share of the cache, and limit it, while the disk is in use')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'warmup share' -AsJob $AsJob.IsPresent -Values @{
                disk        = $each
                machine     = $Machine
                mount_point = $MountPoint
                engine      = $login.Engine
                dsn         = $login.Dsn
                password    = $login.Password
                target      = $Target
                guarantee   = $Guarantee
                limit       = $Limit
            }
        }
    }
}

function New-HotsetSnapshot {
    <#
    .SYNOPSIS
    Save a list of what is cached now, to cache it again after a restart.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    snapshot".
    .PARAMETER Output
    The file to write, on the hotset server.
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    New-HotsetSnapshot shop -Output /srv/hotset/shop.snapshot
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Output,

        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [Parameter(ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            $what = Get-HotsetSubject $Connection $each $Machine
            $go = $PSCmdlet.ShouldProcess($what, 'Save a list of what is cached now, to cache it again after a restart')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'warmup snapshot' -AsJob $AsJob.IsPresent -Values @{
                output  = $Output
                disk    = $each
                machine = $Machine
            }
        }
    }
}

function Get-HotsetTarget {
    <#
    .SYNOPSIS
    List what a warm-up or a pin can name on a database server.
    .DESCRIPTION
    Databases first, then the tables and indexes of the database in -Dsn, largest first.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    targets".
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Count
    How many to list. Default: 100.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Target
    .EXAMPLE
    Get-HotsetTarget sqlserver://db1/shop -Credential sa
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Target')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [ValidateRange(1, 10000)]
        [Nullable[int]] $Count,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        Invoke-HotsetQuery $PSCmdlet $Connection 'warmup targets' -Values @{
            dsn      = $login.Dsn
            password = $login.Password
            engine   = $login.Engine
            count    = $Count
        }
    }
}

function Remove-HotsetPin {
    <#
    .SYNOPSIS
    Remove targets from those pinned, excluded and shared.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset warmup
    unpin".
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER MountPoint
    Where the disk is usually mounted, if it is not mounted now. It is mounted there read-only for
    the duration.
    .PARAMETER Engine
    The database product. By default taken from -Dsn.
    .PARAMETER Dsn
    The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or
    postgresql://db1:5432/shop. No password: that is -Credential's.
    .PARAMETER Credential
    The database's user and password. The password is sent in the request's body only.
    .PARAMETER Target
    Files, folders, tables, databases.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String or objects: -Target
    .OUTPUTS
    System.String: what the server would run, or nothing. With -AsJob Hotset.Job.
    .EXAMPLE
    Remove-HotsetPin table:dbo.orders
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('System.String', 'Hotset.Job')]
    param(
        [ValidateNotNullOrEmpty()]
        [string] $Disk,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $MountPoint,

        [ValidateSet('postgres', 'sqlserver')]
        [string] $Engine,

        [string] $Dsn,

        [pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty,

        [Parameter(Mandatory, Position = 0, ValueFromPipeline)]
        [psobject[]] $Target,

        [switch] $AsJob,

        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    begin {
        $targets = New-Object System.Collections.Generic.List[string]
        $from = New-Object System.Collections.Generic.List[psobject]
    }
    process {
        foreach ($one in $Target) {
            $targets.Add((ConvertTo-HotsetTarget $one))
            $from.Add($one)
        }
    }
    end {
        $origin = Get-HotsetOrigin $PSCmdlet $Connection $from.ToArray()
        if ($origin) { $Connection = $origin }
        $place = Get-HotsetOrigin $PSCmdlet $Machine $from.ToArray() Machine
        if ($place) { $Machine = $place }
        $Dsn = Get-HotsetInstance $PSCmdlet $Dsn $from.ToArray()
        $login = Resolve-HotsetLogin $PSCmdlet $Dsn $Credential $Engine
        if ($null -eq $login) { return }
        $what = Get-HotsetSubject $Connection ($targets -join ', ') $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Remove targets from those pinned, excluded and shared')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'warmup unpin' -AsJob $AsJob.IsPresent -Values @{
            disk        = $Disk
            machine     = $Machine
            mount_point = $MountPoint
            engine      = $login.Engine
            dsn         = $login.Dsn
            password    = $login.Password
            targets     = $targets.ToArray()
        }
    }
}

function Get-HotsetCacheAdvice {
    <#
    .SYNOPSIS
    Find the smallest cache that gives nearly all of the attainable NOPM, its price and wear.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset whatif
    advise".
    .PARAMETER Users
    Number of users; by default the run's.
    .PARAMETER Cores
    Number of cores, each as fast as the run's.
    .PARAMETER Storage
    Other slow storage: a model's name (Get-HotsetDiskModel).
    .PARAMETER StorageIops
    Other slow storage: its random 8 KiB reads per second at each queue depth, such as 1:126,16:850.
    .PARAMETER Trace
    The trace (see hotset whatif trace), or a workload whose requests are generated on the fly, such
    as tpcc:warehouses=5000,buffer=24GiB or tpch:scale=600.
    .PARAMETER Run
    Judge sizes by their NOPM, learned from this run (id or 'last'). Without it they are judged by
    hits alone.
    .PARAMETER Share
    The share to reach of the NOPM with everything cached. Default: 0.95.
    .PARAMETER Policy
    The policy for which wear is simulated and NOPM are predicted. Default: hotset.
    .PARAMETER Mode
    How writes that hit are handled. Default: writeback.
    .PARAMETER Block
    Size of a cache block. bcache: the database's page. Default: 64KiB.
    .PARAMETER Price
    Price of a GiB of flash, in any currency.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Run: -Run
    .OUTPUTS
    Hotset.CacheAdvice. With -AsJob Hotset.Job.
    .EXAMPLE
    Get-HotsetCacheAdvice last /srv/hotset/shop.trace
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.CacheAdvice', 'Hotset.Job')]
    param(
        [ValidateRange(1, 2000)]
        [Nullable[int]] $Users,

        [ValidateRange(1, 1024)]
        [Nullable[int]] $Cores,

        [string] $Storage,

        [string] $StorageIops,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Trace,

        [Parameter(ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Run,

        [ValidateRange(0.0, 1.0)]
        [Nullable[double]] $Share,

        [ValidateSet('hotset', 'lru', 'arc', 'sieve', 's3-fifo', 'smq', 'bcache', 'bound', 'rates')]
        [string] $Policy,

        [ValidateSet('writeback', 'writethrough')]
        [string] $Mode,

        [string] $Block,

        [ValidateRange(0.0, 1000000000.0)]
        [Nullable[double]] $Price,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Run)) {
            $what = Get-HotsetSubject $Connection $each
            $go = $PSCmdlet.ShouldProcess($what, 'Find the smallest cache that gives nearly all of the attainable NOPM, its price and wear')
            if (-not $go) { continue }
            Invoke-HotsetJob $PSCmdlet $Connection 'whatif advise' -AsJob $AsJob.IsPresent -Values @{
                users        = $Users
                cores        = $Cores
                storage      = $Storage
                storage_iops = $StorageIops
                trace        = $Trace
                run          = $each
                share        = $Share
                policy       = $Policy
                mode         = $Mode
                block        = $Block
                price        = $Price
            }
        }
    }
}

function Test-HotsetPrediction {
    <#
    .SYNOPSIS
    Compare what one run predicts with what another run measured.
    .DESCRIPTION
    Predicts at the measured hit ratios, with the users, cores and slow storage of the measured run.

    The token needs the right 'read'. On the server's own command line this is "hotset whatif
    check".
    .PARAMETER Run
    A run's id, the beginning of one, or 'last'.
    .PARAMETER By
    Another run, which the prediction is learned from.
    .PARAMETER StorageIops
    Other slow storage: its random 8 KiB reads per second at each queue depth, such as 1:126,16:850.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Run: -Run
    .OUTPUTS
    Hotset.PredictionCheck
    .EXAMPLE
    Test-HotsetPrediction last -By 20261121-220932-demo
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.PredictionCheck')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Run,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $By,

        [string] $StorageIops,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Run)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'whatif check' -Values @{
                run          = $each
                by           = $By
                storage_iops = $StorageIops
            }
        }
    }
}

function Get-HotsetFlashNeed {
    <#
    .SYNOPSIS
    Show how much flash a disk needs for each hit ratio, from its heat; -Run adds the NOPM.
    .DESCRIPTION
    First count for a working day: Start-HotsetHeat.

    The token needs the right 'read'. On the server's own command line this is "hotset whatif
    flash".
    .PARAMETER Users
    Number of users; by default the run's.
    .PARAMETER Cores
    Number of cores, each as fast as the run's.
    .PARAMETER Storage
    Other slow storage: a model's name (Get-HotsetDiskModel).
    .PARAMETER StorageIops
    Other slow storage: its random 8 KiB reads per second at each queue depth, such as 1:126,16:850.
    .PARAMETER HitRatio
    Predict for this hit ratio, 0 to 1.
    .PARAMETER Disk
    The accelerated disk; may be left out if there is only one.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Run
    Also show the NOPM at each hit ratio, learned from this run (id or 'last').
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Disk: -Disk
    .OUTPUTS
    Hotset.FlashNeed
    .EXAMPLE
    Get-HotsetFlashNeed shop
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.FlashNeed')]
    param(
        [ValidateRange(1, 2000)]
        [Nullable[int]] $Users,

        [ValidateRange(1, 1024)]
        [Nullable[int]] $Cores,

        [string] $Storage,

        [string] $StorageIops,

        [ValidateRange(0.0, 1.0)]
        [double[]] $HitRatio,

        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Disk,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [string] $Run,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Disk)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'whatif flash' -Values @{
                users        = $Users
                cores        = $Cores
                storage      = $Storage
                storage_iops = $StorageIops
                hit_ratio    = $HitRatio
                disk         = $each
                machine      = $Machine
                run          = $Run
            }
        }
    }
}

function Get-HotsetHitCurve {
    <#
    .SYNOPSIS
    Show the hit ratio of an LRU cache of each size, in one pass over a trace.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset whatif
    mrc".
    .PARAMETER Trace
    The trace (see hotset whatif trace), or a workload whose requests are generated on the fly, such
    as tpcc:warehouses=5000,buffer=24GiB or tpch:scale=600.
    .PARAMETER Block
    Size of a cache block. bcache: the database's page. Default: 64KiB.
    .PARAMETER Sample
    Count only this share of the blocks (SHARDS) and show how far the curve may be off: 0.01 is a
    hundred times as fast. Default: 1.
    .PARAMETER Cache
    Show this cache size.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.HitCurve. With -AsJob Hotset.Job.
    .EXAMPLE
    Get-HotsetHitCurve /srv/hotset/shop.trace
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.HitCurve', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Trace,

        [string] $Block,

        [ValidateRange(0.0001, 1.0)]
        [Nullable[double]] $Sample,

        [string[]] $Cache,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Show the hit ratio of an LRU cache of each size, in one pass over a trace')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'whatif mrc' -AsJob $AsJob.IsPresent -Values @{
            trace  = $Trace
            block  = $Block
            sample = $Sample
            cache  = $Cache
        }
    }
}

function Get-HotsetPrediction {
    <#
    .SYNOPSIS
    Predict TPC-C's throughput at other hit ratios, with other users, cores or storage.
    .DESCRIPTION
    Learns from one run that measured before and after, such as the demo's.

    The token needs the right 'read'. On the server's own command line this is "hotset whatif
    predict".
    .PARAMETER Users
    Number of users; by default the run's.
    .PARAMETER Cores
    Number of cores, each as fast as the run's.
    .PARAMETER Storage
    Other slow storage: a model's name (Get-HotsetDiskModel).
    .PARAMETER StorageIops
    Other slow storage: its random 8 KiB reads per second at each queue depth, such as 1:126,16:850.
    .PARAMETER Run
    A run's id, the beginning of one, or 'last'.
    .PARAMETER HitRatio
    Predict for this hit ratio, 0 to 1.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    System.String, or objects with the property Run: -Run
    .OUTPUTS
    Hotset.Prediction
    .EXAMPLE
    Get-HotsetPrediction last -Users 64 -HitRatio 0.8, 0.9, 0.95
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Prediction')]
    param(
        [ValidateRange(1, 2000)]
        [Nullable[int]] $Users,

        [ValidateRange(1, 1024)]
        [Nullable[int]] $Cores,

        [string] $Storage,

        [string] $StorageIops,

        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [string[]] $Run,

        [ValidateRange(0.0, 1.0)]
        [double[]] $HitRatio,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        foreach ($each in @(Select-HotsetItem $Run)) {
            Invoke-HotsetQuery $PSCmdlet $Connection 'whatif predict' -Values @{
                users        = $Users
                cores        = $Cores
                storage      = $Storage
                storage_iops = $StorageIops
                run          = $each
                hit_ratio    = $HitRatio
            }
        }
    }
}

function Start-HotsetTraceRecording {
    <#
    .SYNOPSIS
    Record the requests to a block device, on this computer or a server (needs root).
    .DESCRIPTION
    The kernel traces the time, kind and place of each request, never its content. The device needs
    no cache. Ctrl-C stops without a result.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'admin'. On the server's own command line this is "hotset whatif
    record".
    .PARAMETER Device
    A disk, partition or volume; it needs no cache.
    .PARAMETER Output
    The trace to write.
    .PARAMETER Machine
    Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or
    ssh://[USER@]HOST[:PORT].
    .PARAMETER Minutes
    How long. Default: 15.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.TraceRecording. With -AsJob Hotset.Job.
    .EXAMPLE
    Start-HotsetTraceRecording /dev/disk/by-id/scsi-slow -Output /srv/hotset/shop.snapshot
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TraceRecording', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Device,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Output,

        [ValidateNotNullOrEmpty()]
        [string] $Machine,

        [ValidateRange(0.01, 20160.0)]
        [Nullable[double]] $Minutes,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection '' $Machine
        $go = $PSCmdlet.ShouldProcess($what, 'Record the requests to a block device, on this computer or a server (needs root)')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'whatif record' -AsJob $AsJob.IsPresent -Values @{
            device  = $Device
            output  = $Output
            machine = $Machine
            minutes = $Minutes
        }
    }
}

function Invoke-HotsetSimulation {
    <#
    .SYNOPSIS
    Simulate caches on a trace: every policy with every size, block and mode given.
    .DESCRIPTION
    Several run at once. To resume an interrupted simulation, give the same command again.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset whatif
    simulate".
    .PARAMETER Trace
    The trace (see hotset whatif trace), or a workload whose requests are generated on the fly, such
    as tpcc:warehouses=5000,buffer=24GiB or tpch:scale=600.
    .PARAMETER Cache
    A cache size.
    .PARAMETER Policy
    What decides which blocks are cached; bound: the best possible choice, which knows the future;
    rates: one that knows how often each block is asked for. It is hotset if left out.
    .PARAMETER Block
    Size of a cache block. It is 64 KiB if left out.
    .PARAMETER Mode
    How writes that hit are handled. It is writeback if left out.
    .PARAMETER SequentialCutoff
    bcache: longer sequential requests bypass the cache. 0: none do. Default: 4MiB.
    .PARAMETER Workers
    How many simulations run at once; by default one per core.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Simulation. With -AsJob Hotset.Job.
    .EXAMPLE
    (Invoke-HotsetSimulation /srv/hotset/shop.trace -Policy hotset, smq -Cache 10GiB, 20GiB).Caches | Sort-Object HitRatio
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.Simulation', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Trace,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string[]] $Cache,

        [ValidateSet('hotset', 'lru', 'arc', 'sieve', 's3-fifo', 'smq', 'bcache', 'bound', 'rates')]
        [string[]] $Policy,

        [string[]] $Block,

        [ValidateSet('writeback', 'writethrough')]
        [string[]] $Mode,

        [string] $SequentialCutoff,

        [ValidateRange(1, 1024)]
        [Nullable[int]] $Workers,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Simulate caches on a trace: every policy with every size, block and mode given')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'whatif simulate' -AsJob $AsJob.IsPresent -Values @{
            trace             = $Trace
            cache             = $Cache
            policy            = $Policy
            block             = $Block
            mode              = $Mode
            sequential_cutoff = $SequentialCutoff
            workers           = $Workers
        }
    }
}

function Import-HotsetTrace {
    <#
    .SYNOPSIS
    Convert another program's recording to hotset's own format, compact and checked.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset whatif
    trace convert".
    .PARAMETER Recording
    The other program's recording.
    .PARAMETER Output
    The trace to write.
    .PARAMETER Recorder
    What recorded it: blktrace (as blkparse's text), the kernel's ftrace, fio's write_iolog, MSR
    Cambridge's or Systor '17's CSV files, libCacheSim's oracleGeneral. hotset's own are text or
    binary. Default: hotset.
    .PARAMETER OfDisk
    Only this disk, as the recording names it: 8,16 of blkparse, 0 of MSR, a file of fio. Needed if
    there are several.
    .PARAMETER IdSize
    How many bytes one id of oracleGeneral stands for; 512 if left out.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Trace. With -AsJob Hotset.Job.
    .EXAMPLE
    Import-HotsetTrace /srv/hotset/blkparse.txt -Recorder blkparse -Output /srv/hotset/shop.trace
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.Trace', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Recording,

        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [string] $Output,

        [ValidateSet('hotset', 'blkparse', 'ftrace', 'iolog', 'msr', 'systor', 'oracle-general')]
        [string] $Recorder,

        [string] $OfDisk,

        [string] $IdSize,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Convert another program''s recording to hotset''s own format, compact and checked')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'whatif trace convert' -AsJob $AsJob.IsPresent -Values @{
            recording = $Recording
            output    = $Output
            recorder  = $Recorder
            of_disk   = $OfDisk
            id_size   = $IdSize
        }
    }
}

function Get-HotsetTrace {
    <#
    .SYNOPSIS
    Read a whole trace and sum it up: how many requests, when, to which part of the disk.
    .DESCRIPTION
    The token needs the right 'read'. On the server's own command line this is "hotset whatif trace
    show".
    .PARAMETER Trace
    The trace (see hotset whatif trace), or a workload whose requests are generated on the fly, such
    as tpcc:warehouses=5000,buffer=24GiB or tpch:scale=600.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.Trace
    .EXAMPLE
    Get-HotsetTrace /srv/hotset/shop.trace
    .LINK
    about_Hotset
    #>
    [CmdletBinding()]
    [OutputType('Hotset.Trace')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Trace,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        Invoke-HotsetQuery $PSCmdlet $Connection 'whatif trace show' -Values @{
            trace = $Trace
        }
    }
}

function New-HotsetTpccTrace {
    <#
    .SYNOPSIS
    Generate the requests that TPC-C sends to a disk, at any scale, without a database.
    .DESCRIPTION
    Rows are drawn as the specification says and lie on PostgreSQL's pages; the database's own cache
    and its checkpoints are simulated, and tables grow.

    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset whatif
    trace tpcc".
    .PARAMETER Warehouses
    Number of warehouses, about 100 MB each.
    .PARAMETER Output
    The trace to write.
    .PARAMETER Buffer
    The database's own cache in memory. Default: 1GiB.
    .PARAMETER Tpm
    Transactions of all kinds per minute. Default: 60000.
    .PARAMETER Seconds
    How long. Default: 900.
    .PARAMETER Checkpoint
    Seconds from one checkpoint to the next. Default: 300.
    .PARAMETER Seed
    Of the random numbers. Default: 1.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.TpccTrace. With -AsJob Hotset.Job.
    .EXAMPLE
    New-HotsetTpccTrace /srv/hotset/shop.snapshot -Warehouses 5000
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpccTrace', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [ValidateRange(1, 100000)]
        [int] $Warehouses,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Output,

        [string] $Buffer,

        [ValidateRange(1.0, 1000000000.0)]
        [Nullable[double]] $Tpm,

        [ValidateRange(1.0, 1209600.0)]
        [Nullable[double]] $Seconds,

        [ValidateRange(1.0, 86400.0)]
        [Nullable[double]] $Checkpoint,

        [ValidateRange(0L, 9007199254740992L)]
        [Nullable[long]] $Seed,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Generate the requests that TPC-C sends to a disk, at any scale, without a database')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'whatif trace tpcc' -AsJob $AsJob.IsPresent -Values @{
            warehouses = $Warehouses
            output     = $Output
            buffer     = $Buffer
            tpm        = $Tpm
            seconds    = $Seconds
            checkpoint = $Checkpoint
            seed       = $Seed
        }
    }
}

function New-HotsetTpchTrace {
    <#
    .SYNOPSIS
    Generate the scans of TPC-H's 22 queries, one after the other, at any scale.
    .DESCRIPTION
    It runs as a job on the server, which continues when this session ends. The cmdlet waits for it
    with a progress bar; Ctrl-C only stops the waiting.

    The token needs the right 'operate'. On the server's own command line this is "hotset whatif
    trace tpch".
    .PARAMETER Scale
    The scale factor; 1 is about 1.3 GB.
    .PARAMETER Output
    The trace to write.
    .PARAMETER Buffer
    The database's own cache in memory. Default: 1GiB.
    .PARAMETER ReadRate
    How fast it reads. Default: 200MB/s.
    .PARAMETER Rounds
    How often all queries run. Default: 1.
    .PARAMETER AsJob
    Returns the job at once instead of waiting for it.
    .PARAMETER Connection
    The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or
    addresses. By default the server that you connected to last.
    .INPUTS
    None
    .OUTPUTS
    Hotset.TpchTrace. With -AsJob Hotset.Job.
    .EXAMPLE
    New-HotsetTpchTrace /srv/hotset/shop.snapshot -Scale 100
    .LINK
    about_Hotset
    #>
    [CmdletBinding(SupportsShouldProcess)]
    [OutputType('Hotset.TpchTrace', 'Hotset.Job')]
    param(
        [Parameter(Mandatory, ValueFromPipelineByPropertyName)]
        [ValidateRange(0.01, 100000.0)]
        [double] $Scale,

        [Parameter(Mandatory, Position = 0, ValueFromPipelineByPropertyName)]
        [string] $Output,

        [string] $Buffer,

        [string] $ReadRate,

        [ValidateRange(1, 1000)]
        [Nullable[int]] $Rounds,

        [switch] $AsJob,

        [Parameter(ValueFromPipelineByPropertyName)]
        [Alias('Server')]
        [ValidateNotNullOrEmpty()]
        [object[]] $Connection
    )
    process {
        $what = Get-HotsetSubject $Connection ''
        $go = $PSCmdlet.ShouldProcess($what, 'Generate the scans of TPC-H''s 22 queries, one after the other, at any scale')
        if (-not $go) { return }
        Invoke-HotsetJob $PSCmdlet $Connection 'whatif trace tpch' -AsJob $AsJob.IsPresent -Values @{
            scale     = $Scale
            output    = $Output
            buffer    = $Buffer
            read_rate = $ReadRate
            rounds    = $Rounds
        }
    }
}
