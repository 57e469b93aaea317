	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 6
	.text
	.protected	_Z16transpose_paddedPKfPfi
	.globl	_Z16transpose_paddedPKfPfi
	.type	_Z16transpose_paddedPKfPfi,@function
_Z16transpose_paddedPKfPfi:
.Lfunc_begin0:
	.file	1 "examples" "transpose_padded.cu"
	.loc	1 10 20 prologue_end
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dword s8, s[0:1], 0x10
	.loc	1 11 22
	s_lshl_b32 s1, s3, 5
	v_bfe_u32 v8, v0, 10, 10
	.loc	1 11 29 is_stmt 0
	v_add_u32_e32 v1, s1, v8
	.loc	1 10 22 is_stmt 1
	s_lshl_b32 s0, s2, 5
	v_and_b32_e32 v9, 0x3ff, v0
	.loc	1 13 88
	s_waitcnt lgkmcnt(0)
	v_mul_lo_u32 v0, v1, s8
	.loc	1 13 92 is_stmt 0
	v_add3_u32 v0, s0, v9, v0
	.loc	1 13 77
	v_ashrrev_i32_e32 v1, 31, v0
	.loc	1 13 88
	s_lshl_b32 s2, s8, 3
	.loc	1 13 77
	v_lshl_add_u64 v[2:3], v[0:1], 2, s[4:5]
	.loc	1 13 92
	v_add_u32_e32 v0, s2, v0
	.loc	1 13 77
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[4:5], v[0:1], 2, s[4:5]
	.loc	1 13 92
	v_add_u32_e32 v0, s2, v0
	.loc	1 13 77
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[6:7], v[0:1], 2, s[4:5]
	.loc	1 13 92
	v_add_u32_e32 v0, s2, v0
	.loc	1 13 77
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 2, s[4:5]
	global_load_dword v11, v[2:3], off
	global_load_dword v12, v[4:5], off
	global_load_dword v13, v[6:7], off
	global_load_dword v14, v[0:1], off
	v_mul_u32_u24_e32 v0, 0x84, v8
	.loc	1 16 25 is_stmt 1
	v_add_u32_e32 v1, s0, v8
	v_mul_u32_u24_e32 v2, 0x84, v9
	.loc	1 13 8
	v_lshl_add_u32 v7, v9, 2, v0
	v_lshl_add_u32 v10, v8, 2, v2
	.loc	1 18 52
	v_mul_lo_u32 v0, v1, s8
	.loc	1 18 56 is_stmt 0
	v_add3_u32 v0, s1, v9, v0
	v_add_u32_e32 v2, s2, v0
	v_add_u32_e32 v4, s2, v2
	.loc	1 18 40
	v_ashrrev_i32_e32 v1, 31, v0
	.loc	1 18 56
	v_add_u32_e32 v6, s2, v4
	.loc	1 18 40
	v_lshl_add_u64 v[0:1], v[0:1], 2, s[6:7]
	v_ashrrev_i32_e32 v3, 31, v2
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[2:3], v[2:3], 2, s[6:7]
	v_lshl_add_u64 v[4:5], v[4:5], 2, s[6:7]
	.loc	1 13 75 is_stmt 1
	s_waitcnt vmcnt(3)
	ds_write_b32 v7, v11
	s_waitcnt vmcnt(2)
	ds_write_b32 v7, v12 offset:1056
	s_waitcnt vmcnt(1)
	ds_write_b32 v7, v13 offset:2112
	s_waitcnt vmcnt(0)
	ds_write_b32 v7, v14 offset:3168
	.loc	1 18 40
	v_ashrrev_i32_e32 v7, 31, v6
	v_lshl_add_u64 v[6:7], v[6:7], 2, s[6:7]
	.loc	1 14 3
	s_waitcnt lgkmcnt(0)
	s_barrier
	.loc	1 18 63
	ds_read2_b32 v[8:9], v10 offset1:8
	ds_read2_b32 v[10:11], v10 offset0:16 offset1:24
	.loc	1 18 61 is_stmt 0
	s_waitcnt lgkmcnt(1)
	global_store_dword v[0:1], v8, off
	global_store_dword v[2:3], v9, off
	s_waitcnt lgkmcnt(0)
	global_store_dword v[4:5], v10, off
	global_store_dword v[6:7], v11, off
	.loc	1 19 1 is_stmt 1
	s_endpgm
.Ltmp0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel _Z16transpose_paddedPKfPfi
		.amdhsa_group_segment_fixed_size 4224
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 20
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 1
		.amdhsa_next_free_vgpr 15
		.amdhsa_next_free_sgpr 9
		.amdhsa_accum_offset 16
		.amdhsa_reserve_vcc 0
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end0:
	.size	_Z16transpose_paddedPKfPfi, .Lfunc_end0-_Z16transpose_paddedPKfPfi
	.text
	.text
	.protected	drywarp_entry
	.type	drywarp_entry,@object
	.data
	.globl	drywarp_entry
drywarp_entry:
	.quad	_Z16transpose_paddedPKfPfi
	.size	drywarp_entry, 8
	.type	__hip_cuid_96ae13d0046887d7,@object
	.section	.bss,"aw",@nobits
	.globl	__hip_cuid_96ae13d0046887d7
__hip_cuid_96ae13d0046887d7:
	.size	__hip_cuid_96ae13d0046887d7, 1
	.section	".note.GNU-stack","",@progbits
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .offset:         16
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 4224
    .kernarg_segment_align: 8
    .kernarg_segment_size: 20
    .max_flat_workgroup_size: 1024
    .name:           _Z16transpose_paddedPKfPfi
    .private_segment_fixed_size: 0
    .sgpr_count:     15
    .sgpr_spill_count: 0
    .symbol:         _Z16transpose_paddedPKfPfi.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     15
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
