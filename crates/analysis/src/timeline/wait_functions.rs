// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel functions, and the kind of wait inside them.
//!
//! Names are prefixes: kernels differ in suffixes and in inlining. A name belongs to [`FUNCTIONS`]
//! if a thread inside it waits for the same thing, whatever function it calls. A function that
//! sleeps itself, but also calls functions that sleep for other reasons, belongs to [`SLEEPERS`],
//! which counts only directly above the scheduler. `tests/sleepers.rs` checks the tables against
//! the functions that sleep in the running kernel.

/// Kinds of waits, the most significant first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Waited {
    /// Stopped by a signal or a debugger.
    Stopped,
    /// The thaw of a frozen file system.
    Thaw,
    /// A lock inside the kernel.
    KernelLock,
    /// A page from swap.
    SwapIn,
    /// Memory reclaim.
    Reclaim,
    /// Throttling of a writer until enough dirty pages are written back.
    DirtyLimit,
    /// Writeback of data or journal.
    Fsync,
    /// A page of a file.
    PageIn,
    /// Other block I/O.
    Disk,
    /// A file lock.
    FileLock,
    /// A lock, condition or semaphore in user space.
    Futex,
    /// Exit or state change of a child.
    Child,
    /// A device other than a disk, such as the GPU.
    Device,
    /// Work of the kernel itself: a grace period, a work item, other CPUs.
    Kernel,
    /// A timer.
    Sleep,
    /// A remote host.
    Network,
    /// Another process, through a pipe, socket or event counter.
    Peer,
    /// Any further work: the idle wait of an event loop, a terminal, a work queue.
    Events,
    /// Unknown purpose.
    Unknown,
}

impl Waited {
    /// Returns `true` if only the kernel function identifies the purpose.
    pub(crate) fn is_unnamed(self) -> bool {
        matches!(self, Waited::Device | Waited::Kernel | Waited::Unknown)
    }
}

type Row = (Waited, &'static str);

/// Functions that decide anywhere in a stack. The first row that matches a name counts.
const FUNCTIONS: &[Row] = &[
    (Waited::Stopped, "do_signal_stop ptrace_stop do_freezer_trap __refrigerator"),
    (
        Waited::SwapIn,
        "do_swap_page swap_readpage swap_read_folio swapin_readahead swap_vma_readahead \
         swap_cluster_readahead shmem_swapin zswap_load read_swap_cache __read_swap_cache",
    ),
    (
        Waited::Reclaim,
        "shrink_ try_to_free_ compact_zone throttle_direct_reclaim reclaim_throttle \
         congestion_wait mem_cgroup_handle_over_high try_to_inc_max_seq \
         __mem_cgroup_handle_over_high mem_cgroup_oom_ __alloc_pages_slowpath zswap_store \
         migration_entry_wait pmd_migration_entry_wait migrate_pages too_many_isolated",
    ),
    (Waited::DirtyLimit, "balance_dirty_pages"),
    (
        Waited::Fsync,
        "jbd2_ vfs_fsync ext4_sync_file ext4_fsync xfs_file_fsync btrfs_sync_file \
         file_write_and_wait sync_inodes_sb ksys_sync iterate_supers blkdev_issue_flush xlog_wait \
         xfs_log_force wait_transaction_locked add_transaction_credits do_get_write_access \
         sync_filesystem sync_blockdev __sync_blockdev sync_bdevs fsync_bdev fsync_buffers_list \
         wb_wait_for_completion writeback_inodes_sb __writeback_inodes_sb \
         inode_wait_for_writeback __inode_wait_for_writeback filemap_fdatawait \
         __filemap_fdatawait filemap_write_and_wait __sync_dirty_buffer sync_dirty_buffer \
         f2fs_issue_checkpoint f2fs_sync_file generic_file_fsync wait_current_trans \
         wait_for_commit btrfs_commit_transaction btrfs_wait_for_commit btrfs_sync_log \
         btrfs_wait_ordered_ btrfs_start_ordered_extent btrfs_write_and_wait btrfs_wait_tree_ \
         write_all_supers sync_mapping_buffers write_dirty_buffer xlog_grant_head_ xlog_cil_ \
         xlog_force_ xlog_state_ xfs_iunpin_wait __xfs_iunpin_wait xfs_buf_wait_unpin \
         xfs_ail_push_all_sync",
    ),
    (Waited::PageIn, "filemap_fault __do_fault do_read_fault ext4_filemap_fault"),
    (
        Waited::Disk,
        "io_schedule folio_wait_ wait_on_page __wait_on_buffer wait_on_buffer bit_wait_io blk_ \
         __blk_ submit_bio_wait wbt_wait rq_qos_wait iomap_dio_rw __iomap_dio_rw blkdev_ \
         __bio_queue_enter blkcg_maybe_throttle inode_dio_wait __inode_dio_wait __bread_gfp \
         __bh_read __lock_buffer",
    ),
    (
        Waited::FileLock,
        "locks_lock_inode_wait flock_lock_inode_wait posix_lock_inode_wait fcntl_setlk \
         __do_sys_flock __x64_sys_flock do_lock_file_wait __break_lease",
    ),
    (Waited::Futex, "futex_ __futex_ do_futex"),
    (
        Waited::Child,
        "__do_wait kernel_wait4 wait_for_vfork_done kernel_waitid zap_pid_ns_processes",
    ),
    (Waited::Events, "drm_read"),
    (
        Waited::Device,
        "dma_fence_ dma_resv_wait drm_ i915_ amdgpu_ radeon_ nouveau_ xe_ ttm_bo_ virtio_gpu_ \
         rpm_resume rpm_suspend __pm_runtime_ usb_start_wait_urb usb_kill_urb \
         wait_for_device_probe",
    ),
    (
        Waited::Kernel,
        "synchronize_ __synchronize_ rcu_barrier srcu_barrier rcu_sync_ rcu_exp_wait_wake \
         __wait_rcu_gp exp_funnel_lock cpuid_read rdmsr_ wrmsr_ stop_one_cpu stop_two_cpus \
         __stop_cpus affine_move_task wait_task_inactive flush_work __flush_work flush_workqueue \
         drain_workqueue flush_delayed_work kthread_flush_ kthread_stop kthread_park \
         __kthread_create kthread_create async_synchronize_ irq_work_sync __cancel_work \
         cancel_work_sync",
    ),
    (Waited::Sleep, "hrtimer_nanosleep do_nanosleep common_nsleep __x64_sys_nanosleep"),
    (
        Waited::Network,
        "tcp_ mptcp_ inet_ __inet_ udp_ sctp_ tls_ sk_stream_wait bt_sock_wait nbd_ rpc_wait \
         nfs_wait_ nfs4_delay nfs4_wait_ nlmclnt_ wait_for_response wait_for_free_credits \
         wait_for_compound_request cifs_wait smb2_wait compound_send_recv ceph_mdsc_ \
         ceph_osdc_wait afs_wait netfs_wait p9_ v9fs_",
    ),
    (
        Waited::Peer,
        "pipe_read pipe_write anon_pipe_ unix_ eventfd_read n_tty_write do_tty_write \
         tty_wait_until_sent wait_for_partner pipe_wait_ eventfd_write sock_alloc_send_pskb \
         __unix_",
    ),
    (Waited::Events, "fuse_dev_do_read fuse_dev_read fuse_dev_splice_read"),
    (
        Waited::Peer,
        "request_wait_answer fuse_ do_mq_ do_msg do_semtimedop __do_semtimedop vsock_ __vsock_ \
         fanotify_handle_event fanotify_get_response autofs_wait autofs_expire_wait \
         seccomp_do_user_notif handle_userfault userfaultfd_event_wait userfaultfd_unmap_complete \
         audit_log_start call_usermodehelper __request_module wait_for_key_construction \
         coredump_wait coredump_task_exit wait_for_dump_helpers netlink_attachskb \
         cachefiles_ondemand_ ecryptfs_wait_for_response",
    ),
    (
        Waited::Events,
        "do_sys_poll do_poll do_select core_sys_select ep_poll do_epoll_wait n_tty_read \
         io_cqring_wait do_sigtimedwait sigsuspend __x64_sys_pause inotify_read fanotify_read \
         do_syslog devkmsg_read worker_thread rescuer_thread smpboot_thread_fn \
         kswapd_try_to_sleep kjournald2 kthreadd rcu_ kauditd khugepaged kcompactd oom_reaper \
         psi_ io_wq_worker io_sq_thread kthread_worker_fn signalfd_read timerfd_read \
         userfaultfd_read userfaultfd_ctx_read kvm_vcpu_block kvm_vcpu_halt evdev_read \
         hidraw_read mousedev_read tun_do_read tap_do_read ring_buffer_wait recv_wait_event \
         netlink_recvmsg __do_sys_pause joydev_read hiddev_read serport_ldisc_read serio_raw_read \
         uinput_read uhid_char_read roccat_read coda_psdev_read ecryptfs_miscdev_read \
         vtpm_proxy_fops_read v4l2_event_dequeue reap_as vt_event_wait __vt_event_wait \
         vt_waitactive svc_recv snd_seq_read",
    ),
];

/// Functions that decide only directly above the scheduler.
const SLEEPERS: &[Row] = &[
    (
        Waited::KernelLock,
        "__lock_sock d_alloc_parallel d_wait_lookup __wait_on_freeing_inode find_inode iget \
         ilookup insert_inode_locked inode_insert5 netlink_table_grab expand_files tty_ldisc_ \
         __vma_start_write vma_start_write vma_mark_detached btrfs_drew_ btrfs_lock_extent_bits \
         xfs_lock_ xfs_iget bd_prepare_to_claim dqget lock_two_ shmem_fault super_lock \
         bkey_nocow_lock __lock_extent six_lock_ lock_fdc wait_on_pending_writer",
    ),
    (Waited::Child, "kernel_clone"),
    (Waited::Peer, "tomoyo_supervisor virtio_fs_drain"),
    (Waited::Device, "ec_guard __spi_ regmap_ console_ __pr_flush do_con_write"),
    (
        Waited::Kernel,
        "smp_call_on_cpu rdtgroup_ pseudo_lock_ thaw_processes freeze_processes ima_ fsverity_ \
         derive_key_ stop_machine",
    ),
    (
        Waited::Events,
        "hpet_read rtc_dev_read lineevent_read linereq_read lineinfo_ xenbus_file_read \
         ns_revision_read __skb_wait_for_more_packets",
    ),
    (
        Waited::Reclaim,
        "__vmalloc_ __alloc_pages get_page_from_freelist __kmalloc mem_cgroup_ try_charge",
    ),
    (Waited::SwapIn, "swap_ swapin_ kvm_async_pf_task_wait"),
    (
        Waited::Fsync,
        "start_this_handle wait_log_commit wait_eb_writebacks do_journal_end queue_log_writer \
         inode_sleep_on_writeback ext4_fc_ evict jbd2_ __btrfs_wait_ btrfs_wait_ flush_space \
         __ext4_journal",
    ),
    (
        Waited::Disk,
        "btrfs_ __btrfs_ xfs_ __xfs_ xlog_ ext4_ __ext4_ f2fs_ __f2fs_ bch2_ __bch2_ bch_ ntfs_ \
         nilfs_ erofs_ z_erofs_ squashfs_ get_decomp_stream dax_ iomap_ exit_aio \
         __read_extent_tree_block __reserve_bytes handle_reserve_ticket wait_reserve_ticket \
         try_flush_qgroup find_free_extent bh_uptodate_or_lock block_ __block_ clean_bdev_aliases \
         read_extent_buffer lock_extent_buffer wait_entry_unlocked get_unlocked_entry \
         get_next_unlocked_entry dquot_ mb_cache_entry_wait dm_ __dm_ md_ raid1_ raid5_ raid10_ \
         wait_barrier wait_read_barrier make_stripe_request mddev_ zram_ blkg_ loop_ lo_ nvme_ \
         scsi_ ata_ mmc_ sd_ sr_ sg_ cdrom_ bio_ submit_bio bdev_ start_transaction hfs __hfs \
         jffs2_ jfs lbm reiserfs_ ubifs_ kmmpd scrub_ rmw_rbio submit_read_wait_bio_list \
         start_delalloc exclop_ clean_log_buffer invalidate_and_check_btree flush_scrub \
         submit_initial wait_scrub_stripe __scrub_blocked fscache_ __fscache_ cachefiles_ __mmc_ \
         _mmc_ ahci_ sata_ _wait_barrier raise_barrier freeze_array regular_request_wait \
         wait_for_serialization bitmap_ r5c_ r5l_ resize_stripes reshape_request snapshot_ thin_ \
         verity_ writecache_ dmz_ vdo_ uds_ new_read __make_buffer_clean __write_dirty_buffer \
         __evict_many run_io_job cow_file_range btree_ close_ctree reserve_ticket get_workspace \
         zstd_get_workspace",
    ),
    (
        Waited::Network,
        "nfs_ nfs3_ nfs4_ rpc_ xprt_ cifs_ smb2_ SMB2_ smb_ ceph_ afs_ netfs_ sk_wait_data \
         sk_wait_ __nfs_ nfs42_ pnfs_ _pnfs_ ff_layout_ wait_on_commit update_open_stateid \
         __rpc_execute xs_ SendReceive __cifs_ cifsFile ip_rfc1001_connect __ceph_ \
         wait_generic_request wait_request_timeout __do_request linger_reg_ rbd_ drbd_ aoe dlm_ \
         gfs2_ ocfs2_ __ocfs2_ bt_sock_ iso_sock_ packet_ raw_recvmsg ping_recvmsg rxrpc_ l2cap_ \
         rfcomm_ sco_ smc_ iucv_ kcm_ nlm",
    ),
    (
        Waited::Peer,
        "fanotify_ autofs_ userfaultfd_ splice_ ipc_ wq_sleep af_alg_ paste_selection set_termios \
         coda_upcall cache_check gss_cred_init uinput_request_submit __uhid_report_queue \
         virtio_transport_",
    ),
    (
        Waited::Device,
        "snd_ wait_for_avail usb_ tpm_ i2c_ spi_ acpi_ mei_ __mei_ tty_port_ uart_ send_break \
         rng_ hwrng_ wait_for_random_bytes try_to_generate_entropy wait_port_writable port_fops_ \
         pps_ usbfs_ usbdev_ usbhid_ usblp_ usbtmc_ hub_ xhci_ wdm_ acm_ hid hci_ __hci_ ishtp_ \
         sensor_hub_ vb2_ v4l2_ __snd_ lp_ ipmi_ __i915_ intel_ __intel_ vmw_ qxl_ nvkm_ nv50_ \
         kfd_ amdkfd_ mbox_ pci_ vga_get check_pcc_chan fw_ pm_ dpm_",
    ),
    (
        Waited::Kernel,
        "cgroup_ kernfs_ proc_entry_rundown close_pdeo pin_kill fsnotify_ shrinker_free \
         hook_sb_delete drop_sysctl_table devtmpfs_ klist_remove cpuhp_ put_unbound_pool napi_ \
         netdev_ dev_ crypto_ perf_event_ tty_open tty_release shmem_ de_thread ptrace_ io_uring_ \
         io_ring_ io_wq_ io_sq vhost_ kvm_ do_coredump vfs_coredump idempotent load_module \
         free_module module_ freeze_super percpu_ref_ __percpu_ref_ ring_buffer_resize uprobe_ \
         tasklet_ key_ net_ namespace_ mnt_ nsproxy",
    ),
];

/// Functions that mean a kernel lock near the leaf.
const LOCK_FUNCTIONS: &str = "\
    rwsem_ __mutex_lock mutex_lock percpu_rwsem __percpu_down percpu_down_ __down down_read \
    down_write rt_mutex_slowlock __ww_mutex_lock rwbase_ __rwbase_ ldsem_down_";

/// Maximum number of frames between the leaf and the lock function.
const LOCK_FRAMES: usize = 8;

/// Functions by which a thread gives up its CPU, for any purpose.
const SCHEDULER: &str = "\
    __schedule schedule preempt_schedule io_schedule bit_wait __wait_on_bit \
    out_of_line_wait_on_ wait_woken wait_for_completion __wait_for_common wait_for_common \
    do_wait_for_common msleep usleep_range do_wait_intr";

/// Functions that take the lock of a file system freeze before they write.
const FREEZE_READERS: &str = "\
    sb_start_ __sb_start_ file_start_write kiocb_start_write mnt_want_write vfs_write vfs_iter_ \
    vfs_iocb_iter_write do_iter_ vfs_fallocate vfs_copy_file_range vfs_clone_file_range \
    vfs_coredump vfs_truncate do_ftruncate do_sys_ftruncate do_splice direct_splice_actor \
    backing_file_ kernel_write __kernel_write aio_write io_write touch_atime fifo_pipe_write \
    ovl_start_write lo_rw_aio filemap_page_mkwrite ext4_page_mkwrite ext4_dax_ ext4_evict_inode \
    ext4_writepages ext4_file_open btrfs_page_mkwrite start_transaction xfs_trans_alloc \
    __xfs_write_fault __xfs_filemap_ xfs_filemap_ quotactl_block";

/// Classifies a kernel stack, given leaf first.
pub(crate) fn stack_kind<'a>(functions: impl Iterator<Item = &'a str>) -> Waited {
    let functions: Vec<&str> = functions.collect();
    if waits_for_thaw(&functions) {
        return Waited::Thaw;
    }
    let kinds = functions.iter().enumerate().map(|(depth, name)| function_kind(depth, name));
    kinds.min().unwrap_or(Waited::Unknown).min(sleeper_kind(&functions))
}

/// Classifies by the function directly above the scheduler. The main function of a kernel thread
/// sleeps until there is work, so it means nothing.
fn sleeper_kind(functions: &[&str]) -> Waited {
    let mut above = functions.iter().skip_while(|name| starts(name, SCHEDULER));
    match (above.next(), above.next()) {
        (_, Some(&"kthread")) | (None, _) => Waited::Unknown,
        (Some(name), _) if decides(name) => Waited::Unknown,
        (Some(name), _) => row(SLEEPERS, name),
    }
}

/// Returns `true` if a function determines the kind of wait inside it, whatever it calls.
fn decides(name: &str) -> bool {
    function_kind(0, name) != Waited::Unknown
}

/// A kernel function in the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelFunction {
    /// Kind of wait.
    pub waited: Waited,
    /// `true` if it decides anywhere in a stack, not only directly above the scheduler.
    pub anywhere: bool,
}

/// Looks up a kernel function in the tables.
pub fn kernel_function(name: &str) -> Option<KernelFunction> {
    let anywhere = decides(name);
    let waited = if anywhere { function_kind(0, name) } else { row(SLEEPERS, name) };
    (waited != Waited::Unknown).then_some(KernelFunction { waited, anywhere })
}

fn function_kind(depth: usize, name: &str) -> Waited {
    if depth < LOCK_FRAMES && starts(name, LOCK_FUNCTIONS) {
        return Waited::KernelLock;
    }
    row(FUNCTIONS, name)
}

fn row(rows: &[Row], name: &str) -> Waited {
    rows.iter()
        .find(|(_, prefixes)| starts(name, prefixes))
        .map_or(Waited::Unknown, |(kind, _)| *kind)
}

fn starts(name: &str, prefixes: &str) -> bool {
    prefixes.split(' ').any(|prefix| name.starts_with(prefix))
}

/// Returns `true` if the lock at the leaf is that of a file system freeze, identified by the
/// function that takes it.
fn waits_for_thaw(functions: &[&str]) -> bool {
    let mut above = functions.iter().skip_while(|name| starts(name, SCHEDULER)).peekable();
    let is_percpu =
        above.peek().is_some_and(|name| starts(name, "percpu_rwsem_wait __percpu_down_read"));
    let taker =
        above.find(|name| !starts(name, "percpu_rwsem_wait __percpu_down_read percpu_down_read"));
    is_percpu && taker.is_some_and(|name| starts(name, FREEZE_READERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_function_decides() {
        let fault =
            "__schedule schedule io_schedule folio_wait_bit_common filemap_fault __do_fault";
        assert_eq!(kind(fault), Waited::PageIn);
        let sync =
            "schedule io_schedule folio_wait_writeback file_write_and_wait_range ext4_sync_file";
        assert_eq!(kind(sync), Waited::Fsync);
        let contended =
            "schedule rwsem_down_read_slowpath down_read do_user_addr_fault filemap_fault";
        assert_eq!(kind(contended), Waited::KernelLock);
        let futex = "__schedule schedule futex_do_wait __futex_wait futex_wait do_futex";
        assert_eq!(kind(futex), Waited::Futex);
        assert_eq!(kind("schedule do_sys_poll"), Waited::Events);
        assert_eq!(kind("__schedule schedule"), Waited::Unknown);
    }

    fn kind(stack: &str) -> Waited {
        stack_kind(stack.split(' '))
    }

    #[test]
    fn a_writer_waits_for_thaw_and_a_fork_for_a_lock() {
        assert_eq!(kind("percpu_rwsem_wait vfs_write ksys_write do_syscall_64"), Waited::Thaw);
        assert_eq!(
            kind("percpu_rwsem_wait ext4_page_mkwrite do_page_mkwrite do_fault exc_page_fault"),
            Waited::Thaw
        );
        assert_eq!(
            kind("percpu_rwsem_wait mnt_want_write path_openat do_filp_open do_sys_openat2"),
            Waited::Thaw
        );
        assert_eq!(
            kind("percpu_rwsem_wait direct_splice_actor splice_direct_to_actor do_sendfile"),
            Waited::Thaw
        );
        let scheduler = "__schedule schedule percpu_rwsem_wait __percpu_down_read mnt_want_write open_last_lookups";
        assert_eq!(kind(scheduler), Waited::Thaw);
        assert_eq!(
            kind("percpu_rwsem_wait cgroup_can_fork copy_process kernel_clone"),
            Waited::KernelLock
        );
        assert_eq!(kind("percpu_rwsem_wait flock_lock_inode vfs_write"), Waited::KernelLock);
    }

    #[test]
    fn programs_that_must_answer_are_peers() {
        let stacks = [
            "fanotify_handle_event fsnotify __fsnotify_parent do_dentry_open vfs_open path_openat do_filp_open",
            "handle_userfault __handle_mm_fault handle_mm_fault exc_page_fault asm_exc_page_fault _copy_to_iter \
             copy_page_to_iter filemap_read vfs_read",
            "autofs_wait autofs_mount_wait autofs_d_automount __traverse_mounts step_into link_path_walk",
            "audit_log_start audit_log_exit __audit_syscall_exit syscall_exit_work do_syscall_64",
            "call_usermodehelper_exec __request_module get_fs_type path_mount __x64_sys_mount",
            "wait_for_partner fifo_open do_dentry_open vfs_open path_openat do_filp_open",
            "do_wait_intr_irq eventfd_write vfs_write ksys_write",
            "wq_sleep do_mq_timedsend __x64_sys_mq_timedsend",
            "__do_semtimedop do_semtimedop do_syscall_64",
            "sock_alloc_send_pskb unix_dgram_sendmsg __sys_sendto",
            "__skb_wait_for_more_packets __unix_dgram_recvmsg sock_recvmsg __sys_recvfrom",
        ];
        for stack in stacks {
            assert_eq!(kind(stack), Waited::Peer, "{stack}");
        }
    }

    #[test]
    fn a_datagram_is_from_the_network_or_an_event() {
        let udp =
            "__skb_wait_for_more_packets __skb_recv_udp udp_recvmsg sock_recvmsg __sys_recvfrom";
        let netlink =
            "__skb_wait_for_more_packets __skb_recv_datagram skb_recv_datagram netlink_recvmsg";
        assert_eq!((kind(udp), kind(netlink)), (Waited::Network, Waited::Events));
    }

    #[test]
    fn vfork_waits_for_a_child() {
        assert_eq!(kind("kernel_clone __do_sys_vfork do_syscall_64"), Waited::Child);
    }

    #[test]
    fn transactions_are_fsync_and_other_machines_network() {
        let btrfs = "wait_current_trans start_transaction btrfs_create_common lookup_open path_openat do_filp_open";
        let xfs = "xlog_grant_head_wait xlog_grant_head_check xfs_log_reserve xfs_trans_alloc xfs_vn_update_time";
        let sync =
            "wb_wait_for_completion __writeback_inodes_sb_nr sync_filesystem __x64_sys_syncfs";
        for stack in [btrfs, xfs, sync] {
            assert_eq!(kind(stack), Waited::Fsync, "{stack}");
        }
        let nfs = "rpc_wait_bit_killable __rpc_execute rpc_run_task nfs4_call_sync_sequence _nfs4_proc_getattr vfs_statx";
        let smb = "wait_for_response compound_send_recv cifs_send_recv SMB2_open smb2_open_file cifs_open";
        assert_eq!((kind(nfs), kind(smb)), (Waited::Network, Waited::Network));
    }

    #[test]
    fn a_sleeper_decides_only_above_the_scheduler() {
        assert_eq!(kind("xfs_iget xfs_lookup xfs_vn_lookup"), Waited::KernelLock);
        assert_eq!(kind("reclaim_throttle try_to_free_pages xfs_iget xfs_lookup"), Waited::Reclaim);
        assert_eq!(kind("btrfs_ioctl __x64_sys_ioctl"), Waited::Disk);
        assert_eq!(
            kind("handle_userfault handle_mm_fault exc_page_fault fault_in_readable btrfs_ioctl"),
            Waited::Peer
        );
        assert_eq!(kind("msleep btrfs_drew_read_lock btrfs_ioctl"), Waited::KernelLock);
        assert_eq!(kind("ext4_lazyinit_thread kthread ret_from_fork"), Waited::Unknown);
    }

    #[test]
    fn grace_periods_and_devices_are_no_events() {
        assert_eq!(
            kind("synchronize_rcu_normal rcu_sync_enter freeze_super.part.0 __x64_sys_ioctl"),
            Waited::Kernel
        );
        assert_eq!(
            kind("synchronize_rcu_expedited namespace_unlock path_umount __x64_sys_umount"),
            Waited::Kernel
        );
        assert_eq!(
            kind("rcu_barrier cleanup_net process_one_work worker_thread kthread"),
            Waited::Kernel
        );
        assert_eq!(kind("rcu_gp_kthread kthread ret_from_fork"), Waited::Events);
        assert_eq!(kind("__flush_work tty_buffer_flush_work n_tty_read tty_read"), Waited::Kernel);
        assert_eq!(
            kind("dma_fence_default_wait dma_fence_wait_timeout drm_ioctl __x64_sys_ioctl"),
            Waited::Device
        );
        assert_eq!(kind("drm_read vfs_read ksys_read"), Waited::Events);
        assert_eq!(
            kind("migration_entry_wait_on_locked __handle_mm_fault exc_page_fault"),
            Waited::Reclaim
        );
    }
}
