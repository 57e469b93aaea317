	.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
	.amdhsa_code_object_version 6
	.text
	.protected	_Z9reductionPKfPfi
	.globl	_Z9reductionPKfPfi
	.type	_Z9reductionPKfPfi,@function
_Z9reductionPKfPfi:
.Lfunc_begin0:
	.file	1 "examples" "reduction.cu"
	.loc	1 7 34 prologue_end
	s_load_dword s7, s[4:5], 0x24
	.loc	1 7 20 is_stmt 0
	s_load_dword s8, s[4:5], 0x10
	s_load_dwordx4 s[0:3], s[4:5], 0x0
	.loc	1 0 0
	v_mov_b32_e32 v4, 0
	.loc	1 7 34
	s_waitcnt lgkmcnt(0)
	s_and_b32 s7, s7, 0xffff
	.loc	1 7 22
	s_mul_i32 s4, s6, s7
	.loc	1 7 41
	v_lshl_add_u32 v2, s4, 1, v0
	.loc	1 9 9 is_stmt 1
	v_cmp_gt_i32_e32 vcc, s8, v2
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB0_2
	.loc	1 0 9 is_stmt 0
	v_ashrrev_i32_e32 v3, 31, v2
	v_lshlrev_b64 v[4:5], 2, v[2:3]
	v_mov_b32_e32 v1, s1
	v_add_co_u32_e32 v4, vcc, s0, v4
	v_addc_co_u32_e32 v5, vcc, v1, v5, vcc
	.loc	1 9 20
	global_load_dword v4, v[4:5], off
.LBB0_2:
	.loc	1 0 20
	s_or_b64 exec, exec, s[4:5]
	.loc	1 10 9 is_stmt 1
	v_add_u32_e32 v2, s7, v2
	.loc	1 10 22 is_stmt 0
	v_cmp_gt_u32_e32 vcc, s8, v2
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB0_4
	.loc	1 0 22
	v_mov_b32_e32 v3, 0
	v_lshlrev_b64 v[2:3], 2, v[2:3]
	v_mov_b32_e32 v1, s1
	v_add_co_u32_e32 v2, vcc, s0, v2
	v_addc_co_u32_e32 v3, vcc, v1, v3, vcc
	.loc	1 10 34
	global_load_dword v1, v[2:3], off
	.loc	1 10 31
	s_waitcnt vmcnt(0)
	v_add_f32_e32 v4, v4, v1
.LBB0_4:
	.loc	1 0 31
	s_or_b64 exec, exec, s[4:5]
	.loc	1 11 3 is_stmt 1
	v_lshlrev_b32_e32 v1, 2, v0
	.loc	1 13 40
	s_cmp_lt_u32 s7, 64
	.loc	1 11 24
	s_waitcnt vmcnt(0)
	ds_write_b32 v1, v4
	.loc	1 12 3
	s_waitcnt lgkmcnt(0)
	s_barrier
	.loc	1 13 3
	s_cbranch_scc0 .LBB0_10
.LBB0_5:
	.loc	1 17 19
	v_cmp_gt_u32_e32 vcc, 32, v0
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB0_8
	.loc	1 0 19 is_stmt 0
	v_mbcnt_lo_u32_b32 v2, -1, 0
	v_mbcnt_hi_u32_b32 v2, -1, v2
	.loc	1 18 11 is_stmt 1
	ds_read_b32 v1, v1
	v_and_b32_e32 v3, 63, v2
	.loc	1 19 10
	v_xor_b32_e32 v4, 63, v3
	.loc	1 19 59 is_stmt 0
	v_cmp_gt_u32_e32 vcc, 16, v4
	v_cndmask_b32_e64 v5, 16, 0, vcc
	v_add_lshl_u32 v5, v5, v2, 2
	s_waitcnt lgkmcnt(0)
	ds_bpermute_b32 v5, v5, v1
	v_cmp_gt_u32_e32 vcc, 8, v4
	v_cndmask_b32_e64 v6, 8, 0, vcc
	v_cmp_gt_u32_e32 vcc, 4, v4
	s_mov_b32 s7, 0
	.loc	1 19 56
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v1, v1, v5
	v_add_lshl_u32 v5, v6, v2, 2
	.loc	1 19 59
	ds_bpermute_b32 v5, v5, v1
	v_cndmask_b32_e64 v6, 4, 0, vcc
	v_add_lshl_u32 v6, v6, v2, 2
	v_cmp_gt_u32_e32 vcc, 2, v4
	v_cndmask_b32_e64 v4, 2, 0, vcc
	.loc	1 19 56
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v1, v1, v5
	.loc	1 19 59
	ds_bpermute_b32 v5, v6, v1
	v_add_lshl_u32 v4, v4, v2, 2
	v_cmp_ne_u32_e32 vcc, 63, v3
	v_addc_co_u32_e32 v2, vcc, 0, v2, vcc
	.loc	1 19 56
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v1, v1, v5
	.loc	1 19 59
	ds_bpermute_b32 v4, v4, v1
	v_lshlrev_b32_e32 v2, 2, v2
	.loc	1 20 21 is_stmt 1
	v_cmp_eq_u32_e32 vcc, 0, v0
	.loc	1 19 56
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v1, v1, v4
	.loc	1 19 59 is_stmt 0
	ds_bpermute_b32 v2, v2, v1
	.loc	1 20 21 is_stmt 1
	s_and_b64 exec, exec, vcc
	s_cbranch_execz .LBB0_8
	.loc	1 0 21 is_stmt 0
	s_lshl_b64 s[0:1], s[6:7], 2
	s_add_u32 s0, s2, s0
	.loc	1 19 56 is_stmt 1
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v0, v1, v2
	s_addc_u32 s1, s3, s1
	v_mov_b32_e32 v1, 0
	.loc	1 20 43
	global_store_dword v1, v0, s[0:1]
.LBB0_8:
	.loc	1 22 1
	s_endpgm
.LBB0_9:
	.loc	1 0 1 is_stmt 0
	s_or_b64 exec, exec, s[0:1]
	.loc	1 13 40 is_stmt 1
	s_cmpk_lt_u32 s7, 0x80
	s_mov_b32 s7, s4
	.loc	1 15 5
	s_waitcnt lgkmcnt(0)
	s_barrier
	.loc	1 13 3
	s_cbranch_scc1 .LBB0_5
.LBB0_10:
	.loc	1 13 0 is_stmt 0
	s_lshr_b32 s4, s7, 1
	.loc	1 14 21 is_stmt 1
	v_cmp_gt_u32_e32 vcc, s4, v0
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB0_9
	.loc	1 0 21 is_stmt 0
	v_lshl_add_u32 v2, s4, 2, v1
	.loc	1 14 53
	ds_read_b32 v2, v2
	.loc	1 14 50
	ds_read_b32 v3, v1
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v2, v2, v3
	ds_write_b32 v1, v2
	s_branch .LBB0_9
.Ltmp0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel _Z9reductionPKfPfi
		.amdhsa_group_segment_fixed_size 1024
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 280
		.amdhsa_user_sgpr_count 6
		.amdhsa_user_sgpr_private_segment_buffer 1
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_flat_scratch_init 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_system_sgpr_private_segment_wavefront_offset 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 7
		.amdhsa_next_free_sgpr 9
		.amdhsa_accum_offset 8
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_flat_scratch 0
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
	.size	_Z9reductionPKfPfi, .Lfunc_end0-_Z9reductionPKfPfi
	.text
	.text
	.protected	drywarp_entry
	.type	drywarp_entry,@object
	.data
	.globl	drywarp_entry
drywarp_entry:
	.quad	_Z9reductionPKfPfi
	.size	drywarp_entry, 8
	.type	__hip_cuid_2a551f7b2c9c8fbe,@object
	.section	.bss,"aw",@nobits
	.globl	__hip_cuid_2a551f7b2c9c8fbe
__hip_cuid_2a551f7b2c9c8fbe:
	.size	__hip_cuid_2a551f7b2c9c8fbe, 1
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
      - .offset:         24
        .size:           4
        .value_kind:     hidden_block_count_x
      - .offset:         28
        .size:           4
        .value_kind:     hidden_block_count_y
      - .offset:         32
        .size:           4
        .value_kind:     hidden_block_count_z
      - .offset:         36
        .size:           2
        .value_kind:     hidden_group_size_x
      - .offset:         38
        .size:           2
        .value_kind:     hidden_group_size_y
      - .offset:         40
        .size:           2
        .value_kind:     hidden_group_size_z
      - .offset:         42
        .size:           2
        .value_kind:     hidden_remainder_x
      - .offset:         44
        .size:           2
        .value_kind:     hidden_remainder_y
      - .offset:         46
        .size:           2
        .value_kind:     hidden_remainder_z
      - .offset:         64
        .size:           8
        .value_kind:     hidden_global_offset_x
      - .offset:         72
        .size:           8
        .value_kind:     hidden_global_offset_y
      - .offset:         80
        .size:           8
        .value_kind:     hidden_global_offset_z
      - .offset:         88
        .size:           2
        .value_kind:     hidden_grid_dims
    .group_segment_fixed_size: 1024
    .kernarg_segment_align: 8
    .kernarg_segment_size: 280
    .max_flat_workgroup_size: 1024
    .name:           _Z9reductionPKfPfi
    .private_segment_fixed_size: 0
    .sgpr_count:     13
    .sgpr_spill_count: 0
    .symbol:         _Z9reductionPKfPfi.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     7
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
