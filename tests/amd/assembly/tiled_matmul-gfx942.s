	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 6
	.text
	.protected	_Z12tiled_matmulPKfS0_Pfi
	.globl	_Z12tiled_matmulPKfS0_Pfi
	.type	_Z12tiled_matmulPKfS0_Pfi,@function
_Z12tiled_matmulPKfS0_Pfi:
.Lfunc_begin0:
	.file	1 "examples/amd" "tiled_matmul.hip"
	.loc	1 14 22 prologue_end
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx2 s[8:9], s[0:1], 0x10
	s_load_dword s10, s[0:1], 0x18
	v_and_b32_e32 v2, 0x3ff, v0
	v_bfe_u32 v0, v0, 10, 10
	.loc	1 15 31
	v_lshl_add_u32 v1, s3, 4, v0
	.loc	1 16 24
	s_lshl_b32 s0, s2, 4
	.loc	1 18 27
	s_waitcnt lgkmcnt(0)
	s_cmp_lt_i32 s10, 1
	v_mul_lo_u32 v3, s10, v1
	.loc	1 18 3 is_stmt 0
	s_cbranch_scc1 .LBB0_3
	.loc	1 0 3
	v_lshlrev_b32_e32 v4, 6, v0
	v_lshlrev_b32_e32 v1, 2, v2
	.loc	1 18 3
	v_mul_lo_u32 v0, v0, s10
	v_add_u32_e32 v6, v4, v1
	v_add_u32_e32 v7, 0x400, v1
	v_add3_u32 v0, v2, v0, s0
	s_lshl_b32 s1, s10, 4
	v_add_u32_e32 v8, v2, v3
	s_mov_b32 s2, 0
	v_mov_b32_e32 v5, 0
.LBB0_2:
	.loc	1 19 17 is_stmt 1
	v_add_u32_e32 v10, s2, v8
	.loc	1 20 17
	v_ashrrev_i32_e32 v1, 31, v0
	.loc	1 19 17
	v_ashrrev_i32_e32 v11, 31, v10
	.loc	1 20 17
	v_lshl_add_u64 v[12:13], v[0:1], 2, s[6:7]
	.loc	1 19 17
	v_lshl_add_u64 v[10:11], v[10:11], 2, s[4:5]
	.loc	1 20 17
	global_load_dword v1, v[12:13], off
	.loc	1 19 17
	global_load_dword v9, v[10:11], off
	.loc	1 18 37
	s_add_i32 s2, s2, 16
	.loc	1 18 27 is_stmt 0
	v_add_u32_e32 v0, s1, v0
	s_cmp_ge_i32 s2, s10
	.loc	1 0 0
	s_waitcnt vmcnt(0)
	ds_write2st64_b32 v6, v9, v1 offset1:4
	.loc	1 21 5 is_stmt 1
	s_waitcnt lgkmcnt(0)
	s_barrier
	.loc	1 23 43
	ds_read_b128 v[10:13], v4
	ds_read_b128 v[14:17], v4 offset:16
	ds_read_b128 v[18:21], v4 offset:32
	ds_read_b128 v[22:25], v4 offset:48
	.loc	1 23 54 is_stmt 0
	ds_read2_b32 v[26:27], v7 offset1:16
	ds_read2_b32 v[28:29], v7 offset0:32 offset1:48
	ds_read2_b32 v[30:31], v7 offset0:64 offset1:80
	ds_read2_b32 v[32:33], v7 offset0:96 offset1:112
	ds_read2_b32 v[34:35], v7 offset0:128 offset1:144
	ds_read2_b32 v[36:37], v7 offset0:160 offset1:176
	ds_read2_b32 v[38:39], v7 offset0:192 offset1:208
	ds_read2_b32 v[40:41], v7 offset0:224 offset1:240
	.loc	1 23 40
	s_waitcnt lgkmcnt(7)
	v_fmac_f32_e32 v5, v10, v26
	v_fmac_f32_e32 v5, v11, v27
	s_waitcnt lgkmcnt(6)
	v_fmac_f32_e32 v5, v12, v28
	.loc	1 23 52
	s_waitcnt lgkmcnt(5)
	v_pk_mul_f32 v[14:15], v[14:15], v[30:31]
	.loc	1 23 40
	v_fmac_f32_e32 v5, v13, v29
	v_add_f32_e32 v1, v5, v14
	.loc	1 23 52
	s_waitcnt lgkmcnt(4)
	v_pk_mul_f32 v[16:17], v[16:17], v[32:33]
	.loc	1 23 40
	v_add_f32_e32 v1, v1, v15
	v_add_f32_e32 v1, v1, v16
	.loc	1 23 52
	s_waitcnt lgkmcnt(3)
	v_pk_mul_f32 v[18:19], v[18:19], v[34:35]
	.loc	1 23 40
	v_add_f32_e32 v1, v1, v17
	v_add_f32_e32 v1, v1, v18
	.loc	1 23 52
	s_waitcnt lgkmcnt(2)
	v_pk_mul_f32 v[20:21], v[20:21], v[36:37]
	.loc	1 23 40
	v_add_f32_e32 v1, v1, v19
	v_add_f32_e32 v1, v1, v20
	.loc	1 23 52
	s_waitcnt lgkmcnt(1)
	v_pk_mul_f32 v[22:23], v[22:23], v[38:39]
	.loc	1 23 40
	v_add_f32_e32 v1, v1, v21
	v_add_f32_e32 v1, v1, v22
	.loc	1 23 52
	s_waitcnt lgkmcnt(0)
	v_pk_mul_f32 v[24:25], v[24:25], v[40:41]
	.loc	1 23 40
	v_add_f32_e32 v1, v1, v23
	v_add_f32_e32 v1, v1, v24
	v_add_f32_e32 v5, v1, v25
	.loc	1 24 5 is_stmt 1
	s_barrier
	.loc	1 18 3
	s_cbranch_scc0 .LBB0_2
	s_branch .LBB0_4
.LBB0_3:
	.loc	1 0 3 is_stmt 0
	v_mov_b32_e32 v5, 0
.LBB0_4:
	.loc	1 26 13 is_stmt 1
	v_add3_u32 v2, s0, v2, v3
	.loc	1 14 22
	v_mov_b32_e32 v0, s8
	v_mov_b32_e32 v1, s9
	.loc	1 26 3
	v_ashrrev_i32_e32 v3, 31, v2
	v_lshl_add_u64 v[0:1], v[2:3], 2, v[0:1]
	.loc	1 26 20 is_stmt 0
	global_store_dword v[0:1], v5, off
	.loc	1 27 1 is_stmt 1
	s_endpgm
.Ltmp0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel _Z12tiled_matmulPKfS0_Pfi
		.amdhsa_group_segment_fixed_size 2048
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 28
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
		.amdhsa_next_free_vgpr 42
		.amdhsa_next_free_sgpr 11
		.amdhsa_accum_offset 44
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
	.size	_Z12tiled_matmulPKfS0_Pfi, .Lfunc_end0-_Z12tiled_matmulPKfS0_Pfi
	.text
	.text
	.protected	drywarp_entry
	.type	drywarp_entry,@object
	.data
	.globl	drywarp_entry
drywarp_entry:
	.quad	_Z12tiled_matmulPKfS0_Pfi
	.size	drywarp_entry, 8
	.type	__hip_cuid_963aff6f208e6768,@object
	.section	.bss,"aw",@nobits
	.globl	__hip_cuid_963aff6f208e6768
__hip_cuid_963aff6f208e6768:
	.size	__hip_cuid_963aff6f208e6768, 1
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
      - .address_space:  global
        .offset:         16
        .size:           8
        .value_kind:     global_buffer
      - .offset:         24
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 2048
    .kernarg_segment_align: 8
    .kernarg_segment_size: 28
    .max_flat_workgroup_size: 1024
    .name:           _Z12tiled_matmulPKfS0_Pfi
    .private_segment_fixed_size: 0
    .sgpr_count:     17
    .sgpr_spill_count: 0
    .symbol:         _Z12tiled_matmulPKfS0_Pfi.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     42
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
