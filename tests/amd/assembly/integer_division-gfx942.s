	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 6
	.text
	.protected	_Z16integer_divisionPjPyjyi
	.globl	_Z16integer_divisionPjPyjyi
	.type	_Z16integer_divisionPjPyjyi,@function
_Z16integer_divisionPjPyjyi:
.Lfunc_begin0:
	.file	1 "examples" "integer_division.cu"
	.loc	1 7 33 prologue_end
	s_load_dword s3, s[0:1], 0x34
	.loc	1 7 20 is_stmt 0
	s_load_dword s4, s[0:1], 0x20
	.loc	1 7 33
	s_waitcnt lgkmcnt(0)
	s_and_b32 s3, s3, 0xffff
	.loc	1 7 22
	s_mul_i32 s2, s2, s3
	.loc	1 7 35
	v_add_u32_e32 v0, s2, v0
	.loc	1 8 9 is_stmt 1
	v_cmp_gt_i32_e32 vcc, s4, v0
	s_and_saveexec_b64 s[2:3], vcc
	s_cbranch_execz .LBB0_14
	.loc	1 10 32
	v_cmp_ne_u32_e32 vcc, 0, v0
	v_mov_b32_e32 v4, 0
	.loc	1 10 3 is_stmt 0
	s_and_saveexec_b64 s[4:5], vcc
	s_cbranch_execz .LBB0_5
	.loc	1 7 20 is_stmt 1
	s_load_dword s8, s[0:1], 0x10
	s_mov_b64 s[6:7], 0
	v_mov_b32_e32 v4, 0
	s_waitcnt lgkmcnt(0)
	v_cvt_f32_u32_e32 v1, s8
	s_sub_i32 s2, 0, s8
	v_rcp_iflag_f32_e32 v1, v1
	s_nop 0
	v_mul_f32_e32 v1, 0x4f7ffffe, v1
	v_cvt_u32_f32_e32 v1, v1
	v_mul_lo_u32 v2, s2, v1
	v_mul_hi_u32 v2, v1, v2
	v_add_u32_e32 v1, v1, v2
	v_mov_b32_e32 v2, v0
.LBB0_3:
	.loc	1 10 43
	v_mul_hi_u32 v3, v2, v1
	v_mul_lo_u32 v5, v3, s8
	v_sub_u32_e32 v5, v2, v5
	v_add_u32_e32 v6, 1, v3
	v_cmp_le_u32_e64 s[2:3], s8, v5
	s_nop 1
	v_cndmask_b32_e64 v3, v3, v6, s[2:3]
	v_subrev_u32_e32 v6, s8, v5
	v_cndmask_b32_e64 v5, v5, v6, s[2:3]
	v_add_u32_e32 v6, 1, v3
	v_cmp_le_u32_e64 s[2:3], s8, v5
	s_nop 1
	v_cndmask_b32_e64 v3, v3, v6, s[2:3]
	.loc	1 10 64 is_stmt 0
	v_mul_lo_u32 v5, v3, s8
	v_sub_u32_e32 v5, v2, v5
	.loc	1 10 32
	v_cmp_gt_u32_e64 s[2:3], s8, v2
	.loc	1 10 56
	v_add_u32_e32 v4, v5, v4
	.loc	1 10 3
	s_or_b64 s[6:7], s[2:3], s[6:7]
	v_mov_b32_e32 v2, v3
	s_andn2_b64 exec, exec, s[6:7]
	s_cbranch_execnz .LBB0_3
	.loc	1 0 3
	s_or_b64 exec, exec, s[6:7]
.LBB0_5:
	s_or_b64 exec, exec, s[4:5]
	.loc	1 7 20 is_stmt 1
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	.loc	1 11 3
	v_ashrrev_i32_e32 v1, 31, v0
	v_mov_b64_e32 v[2:3], 0
	v_mov_b64_e32 v[10:11], 0
	.loc	1 7 20
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v6, s4
	v_mov_b32_e32 v7, s5
	.loc	1 11 3
	v_lshl_add_u64 v[6:7], v[0:1], 2, v[6:7]
	.loc	1 11 11 is_stmt 0
	global_store_dword v[6:7], v4, off
	.loc	1 13 3 is_stmt 1
	s_and_saveexec_b64 s[2:3], vcc
	s_cbranch_execz .LBB0_13
	.loc	1 7 20
	s_load_dwordx2 s[4:5], s[0:1], 0x18
	s_mov_b32 s0, 0x7f4a7c15
	s_mov_b32 s1, 0x9e3779b9
	.loc	1 12 47
	v_mul_lo_u32 v6, v1, s0
	v_mul_lo_u32 v7, v0, s1
	s_waitcnt lgkmcnt(0)
	v_cvt_f32_u32_e32 v8, s4
	v_cvt_f32_u32_e32 v9, s5
	v_mad_u64_u32 v[4:5], s[0:1], v0, s0, 0
	v_add3_u32 v5, v5, v7, v6
	v_fmamk_f32 v6, v9, 0x4f800000, v8
	v_rcp_f32_e32 v7, v6
	v_cvt_f32_u32_e32 v8, s4
	s_sub_i32 s0, 0, s4
	s_mov_b64 s[8:9], 0
	v_mul_f32_e32 v7, 0x5f7ffffc, v7
	v_rcp_iflag_f32_e32 v8, v8
	v_mul_f32_e32 v9, 0x2f800000, v7
	v_trunc_f32_e32 v9, v9
	v_fmamk_f32 v7, v9, 0xcf800000, v7
	v_cvt_u32_f32_e32 v12, v7
	v_mul_f32_e32 v7, 0x4f7ffffe, v8
	v_cvt_u32_f32_e32 v7, v7
	v_cvt_u32_f32_e32 v13, v9
	v_mov_b32_e32 v6, 0
	s_mov_b32 s12, 0
	v_mul_lo_u32 v8, s0, v7
	v_mul_hi_u32 v8, v7, v8
	v_add_u32_e32 v14, v7, v8
	s_branch .LBB0_8
.LBB0_7:
	.loc	1 0 47 is_stmt 0
	s_or_b64 exec, exec, s[0:1]
	.loc	1 13 109 is_stmt 1
	v_mul_lo_u32 v7, v9, s4
	v_mul_lo_u32 v15, v8, s5
	v_mad_u64_u32 v[10:11], s[0:1], v8, s4, 0
	v_add3_u32 v7, v11, v15, v7
	v_sub_co_u32_e32 v10, vcc, v4, v10
	.loc	1 13 102 is_stmt 0
	v_mul_lo_u32 v3, v3, s4
	.loc	1 13 109
	s_nop 0
	v_subb_co_u32_e32 v11, vcc, v5, v7, vcc
	.loc	1 13 102
	v_mad_u64_u32 v[10:11], s[0:1], v2, s4, v[10:11]
	v_mul_lo_u32 v2, v2, s5
	v_add3_u32 v11, v3, v11, v2
	.loc	1 13 49
	v_cmp_gt_u64_e32 vcc, s[4:5], v[4:5]
	.loc	1 13 3
	s_or_b64 s[8:9], vcc, s[8:9]
	v_mov_b64_e32 v[4:5], v[8:9]
	v_mov_b64_e32 v[2:3], v[10:11]
	s_andn2_b64 exec, exec, s[8:9]
	s_cbranch_execz .LBB0_12
.LBB0_8:
	.loc	1 13 60 is_stmt 1
	v_or_b32_e32 v7, s5, v5
	v_cmp_ne_u64_e32 vcc, 0, v[6:7]
	s_and_saveexec_b64 s[0:1], vcc
	s_xor_b64 s[10:11], exec, s[0:1]
	s_cbranch_execz .LBB0_10
	s_sub_u32 s0, 0, s4
	v_readfirstlane_b32 s13, v12
	v_readfirstlane_b32 s16, v13
	s_subb_u32 s1, 0, s5
	s_mul_hi_u32 s15, s0, s13
	s_mul_i32 s17, s0, s16
	s_mul_i32 s14, s1, s13
	s_add_i32 s15, s15, s17
	s_add_i32 s15, s15, s14
	s_mul_i32 s18, s0, s13
	s_mul_i32 s17, s13, s15
	s_mul_hi_u32 s19, s13, s18
	s_mul_hi_u32 s14, s13, s15
	s_add_u32 s17, s19, s17
	s_addc_u32 s14, 0, s14
	s_mul_hi_u32 s20, s16, s18
	s_mul_i32 s18, s16, s18
	s_add_u32 s17, s17, s18
	s_mul_hi_u32 s19, s16, s15
	s_addc_u32 s14, s14, s20
	s_addc_u32 s17, s19, 0
	s_mul_i32 s15, s16, s15
	s_add_u32 s14, s14, s15
	s_addc_u32 s15, 0, s17
	s_add_u32 s13, s13, s14
	s_addc_u32 s14, s16, s15
	s_mul_i32 s15, s0, s14
	s_mul_hi_u32 s16, s0, s13
	s_add_i32 s15, s16, s15
	s_mul_i32 s1, s1, s13
	s_add_i32 s15, s15, s1
	s_mul_i32 s0, s0, s13
	s_mul_hi_u32 s16, s14, s0
	s_mul_i32 s17, s14, s0
	s_mul_i32 s19, s13, s15
	s_mul_hi_u32 s0, s13, s0
	s_mul_hi_u32 s18, s13, s15
	s_add_u32 s0, s0, s19
	s_addc_u32 s18, 0, s18
	s_add_u32 s0, s0, s17
	s_mul_hi_u32 s1, s14, s15
	s_addc_u32 s0, s18, s16
	s_addc_u32 s1, s1, 0
	s_mul_i32 s15, s14, s15
	s_add_u32 s0, s0, s15
	s_addc_u32 s1, 0, s1
	s_add_u32 s13, s13, s0
	s_addc_u32 s14, s14, s1
	v_mad_u64_u32 v[8:9], s[0:1], v4, s14, 0
	v_mul_hi_u32 v10, v4, s13
	v_mov_b32_e32 v11, v6
	v_lshl_add_u64 v[8:9], v[10:11], 0, v[8:9]
	v_mad_u64_u32 v[16:17], s[0:1], v5, s13, 0
	v_add_co_u32_e32 v7, vcc, v8, v16
	v_mad_u64_u32 v[10:11], s[0:1], v5, s14, 0
	s_nop 0
	v_addc_co_u32_e32 v8, vcc, v9, v17, vcc
	v_mov_b32_e32 v9, s12
	s_nop 0
	v_addc_co_u32_e32 v11, vcc, 0, v11, vcc
	v_lshl_add_u64 v[8:9], v[8:9], 0, v[10:11]
	v_mul_lo_u32 v7, s5, v8
	v_mul_lo_u32 v15, s4, v9
	v_mad_u64_u32 v[10:11], s[0:1], s4, v8, 0
	v_add3_u32 v7, v11, v15, v7
	v_sub_u32_e32 v11, v5, v7
	v_mov_b32_e32 v15, s5
	v_sub_co_u32_e32 v18, vcc, v4, v10
	v_lshl_add_u64 v[16:17], v[8:9], 0, 1
	s_nop 0
	v_subb_co_u32_e64 v10, s[0:1], v11, v15, vcc
	v_subrev_co_u32_e64 v11, s[0:1], s4, v18
	v_subb_co_u32_e32 v7, vcc, v5, v7, vcc
	s_nop 0
	v_subbrev_co_u32_e64 v10, s[0:1], 0, v10, s[0:1]
	v_cmp_le_u32_e64 s[0:1], s5, v10
	v_cmp_le_u32_e32 vcc, s5, v7
	s_nop 0
	v_cndmask_b32_e64 v15, 0, -1, s[0:1]
	v_cmp_le_u32_e64 s[0:1], s4, v11
	s_nop 1
	v_cndmask_b32_e64 v11, 0, -1, s[0:1]
	v_cmp_eq_u32_e64 s[0:1], s5, v10
	s_nop 1
	v_cndmask_b32_e64 v15, v15, v11, s[0:1]
	v_lshl_add_u64 v[10:11], v[8:9], 0, 2
	v_cmp_ne_u32_e64 s[0:1], 0, v15
	v_cndmask_b32_e64 v15, 0, -1, vcc
	v_cmp_le_u32_e32 vcc, s4, v18
	v_cndmask_b32_e64 v11, v17, v11, s[0:1]
	s_nop 0
	v_cndmask_b32_e64 v17, 0, -1, vcc
	v_cmp_eq_u32_e32 vcc, s5, v7
	s_nop 1
	v_cndmask_b32_e32 v7, v15, v17, vcc
	v_cmp_ne_u32_e32 vcc, 0, v7
	v_cndmask_b32_e64 v7, v16, v10, s[0:1]
	s_nop 0
	v_cndmask_b32_e32 v9, v9, v11, vcc
	v_cndmask_b32_e32 v8, v8, v7, vcc
.LBB0_10:
	.loc	1 0 60 is_stmt 0
	s_andn2_saveexec_b64 s[0:1], s[10:11]
	s_cbranch_execz .LBB0_7
	.loc	1 13 60 is_stmt 1
	v_mul_hi_u32 v7, v4, v14
	v_mul_lo_u32 v8, v7, s4
	v_sub_u32_e32 v8, v4, v8
	v_subrev_u32_e32 v9, s4, v8
	v_cmp_le_u32_e32 vcc, s4, v8
	s_nop 1
	v_cndmask_b32_e32 v8, v8, v9, vcc
	v_add_u32_e32 v9, 1, v7
	v_cndmask_b32_e32 v7, v7, v9, vcc
	v_add_u32_e32 v9, 1, v7
	v_cmp_le_u32_e32 vcc, s4, v8
	s_nop 1
	v_cndmask_b32_e32 v8, v7, v9, vcc
	v_mov_b32_e32 v9, v6
	s_branch .LBB0_7
.LBB0_12:
	.loc	1 0 60 is_stmt 0
	s_or_b64 exec, exec, s[8:9]
.LBB0_13:
	s_or_b64 exec, exec, s[2:3]
	.loc	1 7 20 is_stmt 1
	v_mov_b32_e32 v2, s6
	v_mov_b32_e32 v3, s7
	.loc	1 14 3
	v_lshl_add_u64 v[0:1], v[0:1], 3, v[2:3]
	.loc	1 14 14 is_stmt 0
	global_store_dwordx2 v[0:1], v[10:11], off
.LBB0_14:
	.loc	1 15 1 is_stmt 1
	s_endpgm
.Ltmp0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel _Z16integer_divisionPjPyjyi
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 296
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
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 19
		.amdhsa_next_free_sgpr 21
		.amdhsa_accum_offset 20
		.amdhsa_reserve_vcc 1
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
	.size	_Z16integer_divisionPjPyjyi, .Lfunc_end0-_Z16integer_divisionPjPyjyi
	.text
	.text
	.protected	drywarp_entry
	.type	drywarp_entry,@object
	.data
	.globl	drywarp_entry
drywarp_entry:
	.quad	_Z16integer_divisionPjPyjyi
	.size	drywarp_entry, 8
	.type	__hip_cuid_b9f9c7c60ee46469,@object
	.section	.bss,"aw",@nobits
	.globl	__hip_cuid_b9f9c7c60ee46469
__hip_cuid_b9f9c7c60ee46469:
	.size	__hip_cuid_b9f9c7c60ee46469, 1
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
        .size:           8
        .value_kind:     by_value
      - .offset:         32
        .size:           4
        .value_kind:     by_value
      - .offset:         40
        .size:           4
        .value_kind:     hidden_block_count_x
      - .offset:         44
        .size:           4
        .value_kind:     hidden_block_count_y
      - .offset:         48
        .size:           4
        .value_kind:     hidden_block_count_z
      - .offset:         52
        .size:           2
        .value_kind:     hidden_group_size_x
      - .offset:         54
        .size:           2
        .value_kind:     hidden_group_size_y
      - .offset:         56
        .size:           2
        .value_kind:     hidden_group_size_z
      - .offset:         58
        .size:           2
        .value_kind:     hidden_remainder_x
      - .offset:         60
        .size:           2
        .value_kind:     hidden_remainder_y
      - .offset:         62
        .size:           2
        .value_kind:     hidden_remainder_z
      - .offset:         80
        .size:           8
        .value_kind:     hidden_global_offset_x
      - .offset:         88
        .size:           8
        .value_kind:     hidden_global_offset_y
      - .offset:         96
        .size:           8
        .value_kind:     hidden_global_offset_z
      - .offset:         104
        .size:           2
        .value_kind:     hidden_grid_dims
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 296
    .max_flat_workgroup_size: 1024
    .name:           _Z16integer_divisionPjPyjyi
    .private_segment_fixed_size: 0
    .sgpr_count:     27
    .sgpr_spill_count: 0
    .symbol:         _Z16integer_divisionPjPyjyi.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     19
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
